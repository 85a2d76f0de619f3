// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import Ubiquity

/// How long a device takes from opening a full store until all of it is readable.
struct Opening: Codable {
    /// The call that opens, in nanoseconds.
    var opened: Int64
    /// From the same start, until every value was read, and was right.
    var whole: Int64

    private static let devices = 10
    private static let firstMax: Int64 = 200_000_000
    private static let openingMax: Int64 = 5_000_000
    private static let secondsMax = 30

    /// In a process that has opened nothing before.
    static func measure(home: String) throws -> Opening {
        let start = nanoseconds()
        let store = try SampleStore.open(home: home)
        let opened = nanoseconds() - start
        let lastKey = SampleStore.keys.last!
        while store.string(forKey: lastKey) == nil || !SampleStore.isWhole(store) {
            guard nanoseconds() - start < Int64(secondsMax) * 1_000_000_000 else {
                throw Trouble("the store was not whole after \(secondsMax) s")
            }
            usleep(200)
        }
        let whole = nanoseconds() - start
        // So that the next opening finds all of it on the disk.
        store.synchronize()
        return Opening(opened: opened, whole: whole)
    }

    static func measureFirstSync(_ stage: Stage) throws -> [Measurement] {
        let server = try Server(stage, name: "first-sync")
        defer { server.end() }
        let store = try SampleStore.open(home: try server.newDevice())
        SampleStore.fill(store)
        try store.exchange(seconds: secondsMax)
        let homes = try (0..<devices).map { _ in try server.newDevice() }
        let first = try homes.map { try device(stage, home: $0) }
        let second = try homes.map { try device(stage, home: $0) }
        withExtendedLifetime(store) {}
        return lines(first: first, second: second)
    }

    private static func device(_ stage: Stage, home: String) throws -> Opening {
        var child = try RoleProcess(stage, .open, home: home)
        defer { child.end() }
        let line = try child.lines.next(seconds: secondsMax + 10)
        return try JSONDecoder().decode(Opening.self, from: Data(line.utf8))
    }

    private static func lines(first: [Opening], second: [Opening]) -> [Measurement] {
        let sync = Samples(first.map(\.whole))
        let opening = Samples(second.map(\.opened))
        return [
            Measurement(
                name: "First sync of 1,024 keys, 1 MiB", result: sync.span, target: "≤ 200 ms",
                isMet: sync.max <= firstMax),
            Measurement(
                name: "Opening of that store, once synced", result: opening.span,
                target: "median ≤ 5 ms", isMet: opening.median <= openingMax),
            Measurement(
                name: "The same, with every value read",
                result: Samples(second.map(\.whole)).span),
        ]
    }
}
