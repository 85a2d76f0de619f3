// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

struct DateTextTests {
    @Test(arguments: [
        ("2001-01-01T00:00:00Z", 0), ("2001-01-01T01:00:00+01:00", 0),
        ("2001-01-01T00:00:00.25Z", 0.25), ("2026-11-21T10:00:00.123456Z", 816_948_000.123456),
        ("1969-07-20T20:17:40.5Z", -992_490_139.5), ("2000-12-31T19:00:00-0500", 0),
        ("2001-01-01t02:00:00,5+02", 0.5),
        // As JavaScript and property lists count: without a leap from the Julian calendar.
        ("1500-03-01T00:00:00Z", -15_804_979_200), ("1582-10-10T00:00:00Z", -13_198_032_000),
        ("0001-01-01T00:00:00Z", -63_113_904_000), ("0000-12-30T00:00:00Z", -63_114_076_800),
        ("-000001-12-31T23:59:59Z", -63_145_526_401), ("+012345-01-01T00:00:00Z", 326_425_075_200),
    ])
    func `times of ISO 8601 are read with all their digits`(text: String, seconds: Double) {
        #expect(DateText.seconds(of: text) == seconds)
    }

    @Test(arguments: [
        "", "2026-11-21", "10:00", "2026-13-01T00:00:00Z", "2026-11-21T10:00:00",
        "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2023-04-31T00:00:00Z",
        "2023-01-00T00:00:00Z", "2023-00-10T00:00:00Z", "2023-02-28T25:00:00Z",
        "2023-02-28T24:00:00Z", "2023-02-28T10:60:00Z", "2023-02-28T10:00:60Z",
        "2023-02-28T10:00:00+24:00", "2023-02-28T10:00:00.Z", "2023-02-28T10:00:00ZZ",
        "12345-01-01T00:00:00Z", "-0000-01-01T00:00:00Z", "2023-2-28T10:00:00Z",
        "2023-02-28 10:00:00Z", "+9999999999-01-01T00:00:00Z",
    ])
    func `a text that is not a time with a zone, or that no calendar has, is not read`(
        text: String
    ) {
        #expect(DateText.seconds(of: text) == nil)
    }

    @Test(arguments: [
        0, 0.1, 816_948_000.123456, 1e9 + 0.5, -0.25, -992_490_139.5, 1 / 3.0, 1e-7, -1e-20,
        -63_114_076_800.5, 1e14, -1e14 - 0.5, 999_999_999_999_999, 1e15, -1e300, .infinity,
        -.infinity, .leastNonzeroMagnitude,
    ])
    func `what is printed reads as the same time`(seconds: Double) {
        let text = DateText.text(of: seconds)
        #expect(DateText.seconds(of: text) == seconds, "\(text)")
    }

    @Test func `every day of four hundred years, twice, is its own text`() throws {
        var last = ""
        for day in 0..<300_000 {
            let seconds = -69_425_294_400 + Double(day) * 86_400
            let text = DateText.text(of: seconds)
            try #require(DateText.seconds(of: text) == seconds, "\(text)")
            try #require(text != last)
            last = text
        }
    }

    @Test func `years before 0 and after 9999 have a sign and six digits`() {
        #expect(DateText.text(of: 326_425_075_200) == "+012345-01-01T00:00:00Z")
        #expect(DateText.text(of: -63_145_526_401) == "-000001-12-31T23:59:59Z")
        #expect(DateText.text(of: -15_804_979_200) == "1500-03-01T00:00:00Z")
    }

    @Test func `a date outside of any calendar is printed as a number`() {
        #expect(DateText.text(of: .infinity) == "inf s after 2001-01-01T00:00:00Z")
        #expect(DateText.text(of: .nan) == "nan s after 2001-01-01T00:00:00Z")
        #expect(DateText.seconds(of: "nan s after 2001-01-01T00:00:00Z")?.isNaN == true)
    }
}
