// SPDX-License-Identifier: Apache-2.0

/// A date of the years 1 to 9999 as in XML property lists: in UTC, to the second.
struct CalendarTime {
    /// Since 2001-01-01 00:00:00 UTC.
    private let seconds: Int64

    private static let daySeconds: Int64 = 86_400
    /// From 0000-03-01, where the calculation's years begin, to 2001-01-01.
    private static let daysBefore2001: Int64 = 730_791
    /// The days in 400, 100, 4 and 1 years.
    private static let (eraDays, centuryDays, leapDays, yearDays): (Int64, Int64, Int64, Int64) =
        (146_097, 36_524, 1_460, 365)

    /// - Parameter seconds: A value that `XMLCompatibility` considers exact.
    init(seconds: Double) { self.seconds = Int64(seconds) }

    /// For example "2026-11-21T10:00:00Z".
    var text: String {
        let second = Self.modulo(seconds, Self.daySeconds)
        let (year, month, day) = Self.calendar(
            day: (seconds - second) / Self.daySeconds + Self.daysBefore2001)
        let date = "\(Self.digits(year, 4))-\(Self.digits(month, 2))-\(Self.digits(day, 2))"
        let parts = [second / 3_600, second / 60 % 60, second % 60]
        return "\(date)T\(parts.map { Self.digits($0, 2) }.joined(separator: ":"))Z"
    }

    /// Uses years that begin in March, so that a leap day is the last day, and eras of 400 years,
    /// which are all alike.
    private static func calendar(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let dayOfEra = modulo(day, eraDays)
        let yearOfEra =
            (dayOfEra - dayOfEra / leapDays + dayOfEra / centuryDays - dayOfEra / (eraDays - 1))
            / yearDays
        let dayOfYear = dayOfEra - (yearDays * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        // From March on, every five months have 153 days.
        let month = (5 * dayOfYear + 2) / 153
        let year = (day - dayOfEra) / eraDays * 400 + yearOfEra + (month >= 10 ? 1 : 0)
        return (year, (month + 2) % 12 + 1, dayOfYear - (153 * month + 2) / 5 + 1)
    }

    private static func modulo(_ number: Int64, _ divisor: Int64) -> Int64 {
        let rest = number % divisor
        return rest < 0 ? rest + divisor : rest
    }

    private static func digits(_ number: Int64, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
}
