// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import UbiquityCLI

@Suite("A time as people say it")
struct PastTimeTests {
    /// A Saturday, 14:30:15 in Berlin.
    private let berlin = PastTime(
        now: Date(timeIntervalSince1970: 1_795_267_815),
        zone: TimeZone(identifier: "Europe/Berlin")!
    )

    private func utc(_ text: String) -> String? {
        berlin.date(of: text).map { $0.formatted(.iso8601) }
    }

    @Test(arguments: ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"])
    func `is printed as it can be typed, whatever the zone and the season`(_ name: String) throws {
        let zone = try #require(TimeZone(identifier: name))
        // The hour that the clocks of Berlin show twice, and half a year later.
        for seconds in [1_792_886_400, 1_792_890_000, 1_808_600_000] as [Int64] {
            let text = Phrase.time(seconds * 1_000, in: zone)
            #expect(berlin.date(of: text)?.milliseconds == seconds * 1_000, "\(text)")
        }
    }

    @Test(
        arguments: [
            ("now", "2026-11-21T13:30:15Z"), ("today", "2026-11-20T23:00:00Z"),
            ("yesterday", "2026-11-19T23:00:00Z"), ("Yesterday at 18:00", "2026-11-20T17:00:00Z"),
            ("18:00 yesterday", "2026-11-20T17:00:00Z"), ("noon", "2026-11-21T11:00:00Z"),
            ("14:00", "2026-11-21T13:00:00Z"), ("18:00", "2026-11-20T17:00:00Z"),
            ("18:00:30", "2026-11-20T17:00:30Z"), ("6pm", "2026-11-20T17:00:00Z"),
            ("6 pm", "2026-11-20T17:00:00Z"), ("6:45 am", "2026-11-21T05:45:00Z"),
            ("12am", "2026-11-20T23:00:00Z"), ("Tuesday", "2026-11-16T23:00:00Z"),
            ("last tue 9:30", "2026-11-17T08:30:00Z"), ("saturday", "2026-11-13T23:00:00Z"),
            ("friday 6pm", "2026-11-20T17:00:00Z"), ("2 hours ago", "2026-11-21T11:30:15Z"),
            ("an hour ago", "2026-11-21T12:30:15Z"), ("1h30m ago", nil),
            ("1h 30m", "2026-11-21T12:00:15Z"), ("90m", "2026-11-21T12:00:15Z"),
            ("3 days ago", "2026-11-18T13:30:15Z"), ("a week ago", "2026-11-14T13:30:15Z"),
            ("1 month ago", "2026-10-21T12:30:15Z"), ("1 day 2 hours ago", "2026-11-20T11:30:15Z"),
            ("2026-11-20", "2026-11-19T23:00:00Z"), ("2026-11-20 18:00", "2026-11-20T17:00:00Z"),
            ("2026-11-20 6pm", "2026-11-20T17:00:00Z"),
            ("2026-11-20T18:00", "2026-11-20T17:00:00Z"),
            ("2026-11-20T18:00:05Z", "2026-11-20T18:00:05Z"),
            ("2026-11-20T18:00:05.75+03:00", "2026-11-20T15:00:05Z"),
            ("2026-11-20 18:00-0500", "2026-11-20T23:00:00Z"),
            ("2026-11-20 18:00:05 +03:00", "2026-11-20T15:00:05Z"),
            ("2026-11-20 18:00:05 UTC", "2026-11-20T18:00:05Z"),
            ("20 November", "2026-11-19T23:00:00Z"), ("Nov 20 18:00", "2026-11-20T17:00:00Z"),
            ("24 Dec", "2025-12-23T23:00:00Z"), ("24 dec 2024 noon", "2024-12-24T11:00:00Z"),
            ("29 february", "2024-02-28T23:00:00Z"),
            // The clocks went back on 25 October, and forward on 29 March.
            ("2026-10-25 12:00", "2026-10-25T11:00:00Z"), ("30 days ago", "2026-10-22T12:30:15Z"),
            ("2026-03-29 02:30", "2026-03-29T01:30:00Z"),
        ] as [(String, String?)])
    func `is read in the person's zone`(_ text: String, _ expected: String?) {
        #expect(utc(text) == expected)
    }

    @Test(arguments: [
        "", "teatime", "25:00", "18:60", "13pm", "0pm", "2026-02-30", "2026-13-01", "2 hours",
        "ago", "18", "tu", "yesterday yesterday", "18:00 19:00", "31 June 2026", "-2 hours ago",
        "99999999999999999999 days ago", "2026-11-20T18:00+99:00", "yesterday at tea",
    ])
    func `is nothing else`(_ text: String) {
        #expect(utc(text) == nil)
        #expect(throws: Failure.self) { try berlin.milliseconds(of: text) }
    }

    @Test func `must be over`() throws {
        #expect(try berlin.milliseconds(of: "2026-11-21 14:30:15") == 1_795_267_815_000)
        #expect(try berlin.milliseconds(of: "2026-11-20T18:00:05.75Z") == 1_795_197_605_750)
        #expect(throws: Failure(.usage, "\"2026-11-21 14:31\" is in the future")) {
            try berlin.milliseconds(of: "2026-11-21 14:31")
        }
    }
}
