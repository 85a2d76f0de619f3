// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Dates as text: ISO 8601 with all digits of the fraction. Foundation only keeps three.
enum DateText {
    /// Seconds since 2001; nil if the text is not a time with its zone.
    static func seconds(of text: String) -> Double? {
        let text = text.uppercased()
        guard let separator = text.firstIndex(of: "T") else { return nil }
        let point = text[separator...].firstIndex { $0 == "." || $0 == "," }
        guard let point else { return wholeSeconds(of: text) }
        let digits = text[text.index(after: point)...].prefix { $0.isASCII && $0.isNumber }
        let zone = text[digits.endIndex...]
        guard !digits.isEmpty, let whole = wholeSeconds(of: text[..<point] + zone) else {
            return nil
        }
        return sum(of: whole, digits)
    }

    /// Adds as text where that is exact, so that printed dates are read back as the same ones.
    private static func sum(of whole: Double, _ digits: Substring) -> Double? {
        if whole >= 0, whole < 1e15 { return Double("\(Int64(whole)).\(digits)") }
        return Double("0.\(digits)").map { whole + $0 }
    }

    private static func wholeSeconds(of text: some StringProtocol) -> Double? {
        let text = String(text)
        // The parser takes a text without a zone as GMT, but a person may have meant another zone.
        guard text.hasSuffix("Z") || text.dropFirst(11).contains(where: { "+-".contains($0) })
        else { return nil }
        return try? Date(text, strategy: .iso8601).timeIntervalSinceReferenceDate
    }

    /// The shortest text that is read back as the same date, in UTC.
    static func text(of seconds: Double) -> String {
        guard XMLCompatibility.hasCalendar(seconds) else {
            return "\(seconds) s after 2001-01-01T00:00:00Z"
        }
        let whole = seconds.rounded(.down)
        let text = Date(timeIntervalSinceReferenceDate: whole).formatted(.iso8601)
        guard let fraction = fraction(of: seconds, whole: whole) else { return text }
        return text.dropLast() + ".\(fraction)Z"
    }

    private static func fraction(of seconds: Double, whole: Double) -> Substring? {
        guard seconds != whole else { return nil }
        let number = "\(seconds >= 0 ? seconds : seconds - whole)"
        guard !number.contains("e") else { return nil }
        return number.split(separator: ".").last
    }
}
