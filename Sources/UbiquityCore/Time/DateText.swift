// SPDX-License-Identifier: Apache-2.0

/// Dates as text: ISO 8601 with all digits of the fraction, in the Gregorian calendar for all time,
/// as in property lists and JavaScript. Years before 0 and after 9999 have a sign and at least six
/// digits.
package enum DateText {
    /// Seconds since 2001; nil for a text that is not a time with its zone, and for a day or a time
    /// that does not exist, such as 2023-02-29 or 25:00:00.
    package static func seconds(of text: some StringProtocol) -> Double? {
        if text.hasSuffix(unit) {
            return Double(text.dropLast(unit.count)).map { $0.isNaN ? .nan : $0 }
        }
        var scanner = Scanner(rest: Array(text.utf8)[...])
        guard let day = scanner.day(), scanner.take("Tt"), let time = scanner.time() else {
            return nil
        }
        let fraction = scanner.fraction()
        guard let fraction, let offset = scanner.zone(), scanner.rest.isEmpty else { return nil }
        return number(whole: (day - firstDay) * daySeconds + time - offset, fraction)
    }

    /// The shortest text that is read back as the same date, in UTC.
    package static func text(of seconds: Double) -> String {
        guard hasDay(seconds) else { return "\(seconds)\(unit)" }
        let (whole, fraction) = digits(of: seconds)
        let second = whole.remainder(by: daySeconds)
        let day = civil((whole - second) / daySeconds + firstDay)
        let date = "\(year(day.year))-\(padded(day.month, 2))-\(padded(day.day, 2))"
        let time = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, 2) }
        return "\(date)T\(time.joined(separator: ":"))\(fraction.isEmpty ? "" : ".\(fraction)")Z"
    }

    /// Whether a date is on a day that has a name: neither infinite, nor NaN, nor beyond the largest.
    static func hasDay(_ seconds: Double) -> Bool { abs(seconds) < secondsMax }

    /// For dates without a day.
    private static let unit = " s after 2001-01-01T00:00:00Z"
    /// Some 30 million years, for which a number has digits before its fraction.
    private static let secondsMax = 1e15
    private static let daySeconds: Int64 = 86_400
    /// 2001-01-01, in days since 1970.
    private static let firstDay: Int64 = 11_323

    private static func year(_ year: Int64) -> String {
        (0...9_999).contains(year)
            ? padded(year, 4) : (year < 0 ? "-" : "+") + padded(abs(year), 6)
    }

    private static func padded(_ number: Int64, _ count: Int) -> String {
        let digits = "\(number)"
        return String(repeating: "0", count: max(0, count - digits.count)) + digits
    }
}

// MARK: - Seconds in decimal digits

extension DateText {
    /// The whole seconds, rounded down, and the digits of the fraction.
    private static func digits(of seconds: Double) -> (whole: Int64, fraction: String) {
        let (whole, fraction) = decimal(abs(seconds))
        guard seconds < 0 else { return (whole, fraction) }
        return fraction.isEmpty ? (-whole, "") : (-whole - 1, complement(fraction))
    }

    /// Reads the digits as text, so that the number is the nearest to them.
    private static func number(whole: Int64, _ fraction: String) -> Double? {
        guard fraction.contains(where: { $0 != "0" }) else { return Double(whole) }
        return whole >= 0
            ? Double("\(whole).\(fraction)") : Double("-\(-whole - 1).\(complement(fraction))")
    }

    /// The shortest digits of a number that is not negative.
    private static func decimal(_ number: Double) -> (whole: Int64, fraction: String) {
        let parts = "\(number)".split(separator: "e")
        let digits = parts[0].split(separator: ".")
        let fraction = digits.count > 1 && digits[1] != "0" ? String(digits[1]) : ""
        // Only small numbers have an exponent here.
        guard parts.count > 1, let exponent = Int(parts[1]) else {
            return (Int64(digits[0]) ?? 0, fraction)
        }
        return (0, String(repeating: "0", count: max(0, -exponent - 1)) + digits[0] + fraction)
    }

    /// The digits of 1 minus the fraction, which is not 0.
    private static func complement(_ fraction: String) -> String {
        let digits = fraction.utf8.map { 9 - ($0 - UInt8(ascii: "0")) }
        let last = digits.lastIndex { $0 < 9 } ?? 0
        let raised = digits.indices.map { index in
            index < last ? digits[index] : index == last ? digits[index] + 1 : 0
        }
        return raised.map(String.init).joined()
    }
}

// MARK: - Days

extension DateText {
    /// The number of a day since 1970-01-01; nil for a day that is not in the calendar.
    ///
    /// A year begins in March here, so that the leap day is its last.
    fileprivate static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
        guard (1...12).contains(month) else { return nil }
        let (shifted, ofYear) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let inEra = shifted.remainder(by: 400)
        let ofEra = inEra * 365 + inEra / 4 - inEra / 100 + (153 * ofYear + 2) / 5 + day - 1
        let number = (shifted - inEra) / 400 * eraDays + ofEra - eraStart
        guard day >= 1, civil(number) == (year, month, day) else { return nil }
        return number
    }

    fileprivate static func civil(_ number: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let ofEra = (number + eraStart).remainder(by: eraDays)
        let inEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * inEra + inEra / 4 - inEra / 100)
        let shifted = (5 * ofYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        let year = inEra + (number + eraStart - ofEra) / eraDays * 400 + (month <= 2 ? 1 : 0)
        return (year, month, ofYear - (153 * shifted + 2) / 5 + 1)
    }

    /// Four hundred years.
    private static let eraDays: Int64 = 146_097
    /// The days from 0000-03-01 to 1970-01-01.
    private static let eraStart: Int64 = 719_468
}

extension Int64 {
    /// Never negative.
    fileprivate func remainder(by divisor: Int64) -> Int64 {
        let rest = self % divisor
        return rest < 0 ? rest + divisor : rest
    }
}

// MARK: - Reading

private struct Scanner {
    var rest: ArraySlice<UInt8>

    mutating func day() -> Int64? {
        let (isNegative, isSigned) = (rest.first == UInt8(ascii: "-"), take("+-"))
        guard let year = number(isSigned ? 4...9 : 4...4), !isNegative || year > 0, take("-"),
            let month = number(2...2), take("-"), let day = number(2...2)
        else { return nil }
        return DateText.days(isNegative ? -year : year, month, day)
    }

    mutating func time() -> Int64? {
        guard let hour = number(2...2), hour < 24, take(":"), let minute = number(2...2),
            minute < 60, take(":"), let second = number(2...2), second < 60
        else { return nil }
        return hour * 3_600 + minute * 60 + second
    }

    /// The digits, none if there is no fraction; nil if there is a point without digits.
    mutating func fraction() -> String? {
        guard take(".,") else { return "" }
        let digits = rest.prefix(while: Self.isDigit)
        rest = rest[digits.endIndex...]
        return digits.isEmpty ? nil : String(decoding: digits, as: UTF8.self)
    }

    /// The offset from UTC in seconds: `Z`, `+01:00`, `+0100` or `+01`.
    mutating func zone() -> Int64? {
        if take("Zz") { return 0 }
        let isNegative = rest.first == UInt8(ascii: "-")
        guard take("+-"), let hours = number(2...2), hours < 24 else { return nil }
        let hasColon = take(":")
        let minutes = hasColon || !rest.isEmpty ? number(2...2) : 0
        guard let minutes, minutes < 60 else { return nil }
        return (hours * 3_600 + minutes * 60) * (isNegative ? -1 : 1)
    }

    mutating func take(_ bytes: String) -> Bool {
        guard let first = rest.first, bytes.utf8.contains(first) else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func number(_ count: ClosedRange<Int>) -> Int64? {
        let digits = rest.prefix(count.upperBound).prefix(while: Self.isDigit)
        guard count.contains(digits.count) else { return nil }
        rest = rest[digits.endIndex...]
        return Int64(String(decoding: digits, as: UTF8.self))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
