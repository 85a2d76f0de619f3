// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Reads times as people say them, in their own zone: "yesterday", "2 hours ago", "Tuesday 18:00",
/// "6pm", "20 November", ISO 8601, and as ``Phrase`` prints them.
///
/// A day alone is its beginning. A time alone, a weekday, and a date without a year are the last
/// such before now; a weekday is never today.
struct PastTime {
    private let now: Date
    private let calendar: Calendar

    static let examples =
        "\"yesterday\", \"2 hours ago\", \"Tuesday 18:00\" or \"2026-11-20 18:00\""

    init(now: Date = Date(), zone: TimeZone = .current) {
        self.now = now
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = zone
        self.calendar = calendar
    }

    /// Milliseconds since 1970.
    /// - Throws: ``Failure`` for a text that is not a time, and for a time that is in the future.
    func milliseconds(of text: String) throws(Failure) -> Int64 {
        let date = try check(text)
        guard date <= now else { throw Failure(.usage, "\"\(text)\" is in the future") }
        return max(0, date.milliseconds)
    }

    /// - Throws: ``Failure`` for a text that is not a time.
    @discardableResult
    func check(_ text: String) throws(Failure) -> Date {
        guard let date = date(of: text) else {
            throw Failure(
                .usage, "\"\(text)\" is not a time; say it like \(Self.examples)")
        }
        return date
    }

    /// Nil if the text is not a time.
    func date(of text: String) -> Date? {
        let text = text.lowercased().trimmingCharacters(in: .whitespaces)
        guard text.utf8.count <= 64 else { return nil }
        if text == "now" { return now }
        if let date = numericDate(text) { return date }
        let fillers: Set<Substring> = ["at", "on", "last", "o'clock"]
        let words = text.split { $0 == " " || $0 == "," }.filter { !fillers.contains($0) }
        return ago(words) ?? dayAndTime(words)
    }

    // MARK: - Dates in numbers

    private func numericDate(_ text: String) -> Date? {
        let pattern =
            /(\d{4})-(\d{2})-(\d{2})(?:[t ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)? ?(z|utc|[+-]\d{2}:?\d{2})?)?/
        guard let match = text.wholeMatch(of: pattern)?.output else { return nil }
        var calendar = calendar
        if let zone = match.8 {
            guard let seconds = Self.offset(of: zone),
                let zone = TimeZone(secondsFromGMT: seconds)
            else { return nil }
            calendar.timeZone = zone
        }
        let day = DateComponents(year: Int(match.1), month: Int(match.2), day: Int(match.3))
        let time = (
            hour: match.4.flatMap { Int($0) } ?? 0, minute: match.5.flatMap { Int($0) } ?? 0,
            second: match.6.flatMap { Int($0) } ?? 0
        )
        let fraction = match.7.flatMap { Double("0.\($0)") } ?? 0
        return date(day, time, calendar)?.addingTimeInterval(fraction)
    }

    private static func offset(of zone: Substring) -> Int? {
        if ["z", "utc"].contains(zone) { return 0 }
        let digits = zone.dropFirst().filter { $0 != ":" }
        guard let hours = Int(digits.prefix(2)), let minutes = Int(digits.suffix(2)), hours < 24,
            minutes < 60
        else { return nil }
        return (zone.first == "-" ? -60 : 60) * (hours * 60 + minutes)
    }

    private typealias TimeOfDay = (hour: Int, minute: Int, second: Int)

    /// Nil for a day or a time that does not exist. A time that a clock change skips is the one
    /// after it.
    private func date(_ day: DateComponents, _ time: TimeOfDay, _ calendar: Calendar) -> Date? {
        guard time.hour < 24, time.minute < 60, time.second < 60 else { return nil }
        var all = day
        (all.hour, all.minute, all.second) = (time.hour, time.minute, time.second)
        guard let date = calendar.date(from: all) else { return nil }
        let back = calendar.dateComponents([.year, .month, .day], from: date)
        return back.day == day.day && back.month == day.month ? date : nil
    }

    // MARK: - How long ago

    /// Such as "2 hours ago", "an hour ago", "1h 30m" and "3d".
    private func ago(_ words: [Substring]) -> Date? {
        let isSaid = words.last == "ago"
        var words = isSaid ? words.dropLast() : words[...]
        guard !words.isEmpty else { return nil }
        var date: Date? = now
        while let word = words.popFirst() {
            let digits = word.prefix(while: \.isASCIIDigit)
            var unit = word.dropFirst(digits.count)
            var number = Int(digits)
            if ["a", "an", "one"].contains(word) { (number, unit) = (1, "") }
            // In full only with "ago": "2 hours" alone is no time.
            if unit.isEmpty, isSaid { unit = words.popFirst() ?? "" }
            guard let number, number < 100_000, let component = Self.components[String(unit)],
                let current = date
            else { return nil }
            date = calendar.date(byAdding: component.0, value: -number * component.1, to: current)
        }
        return date
    }

    private static let components: [String: (Calendar.Component, Int)] = {
        var all: [String: (Calendar.Component, Int)] = [:]
        for (words, component) in [
            ("s sec secs second seconds", (Calendar.Component.second, 1)),
            ("m min mins minute minutes", (.minute, 1)), ("h hr hrs hour hours", (.hour, 1)),
            ("d day days", (.day, 1)), ("w week weeks", (.day, 7)),
            ("month months", (.month, 1)), ("y year years", (.year, 1)),
        ] {
            for word in words.split(separator: " ") { all[String(word)] = component }
        }
        return all
    }()

    // MARK: - Days and times

    private func dayAndTime(_ words: [Substring]) -> Date? {
        var words = words[...]
        var time: TimeOfDay?
        // "18:00 yesterday" is as good as "yesterday 18:00".
        if let first = Self.takeTime(&words) { time = first }
        guard !words.isEmpty else { return time.flatMap(lastTime) }
        guard let day = takeDay(&words) else { return nil }
        if time == nil { time = Self.takeTime(&words) }
        guard words.isEmpty else { return nil }
        return date(day, time ?? (0, 0, 0), calendar)
    }

    private static func takeTime(_ words: inout ArraySlice<Substring>) -> TimeOfDay? {
        guard let first = words.first else { return nil }
        let named: [Substring: TimeOfDay] = ["noon": (12, 0, 0), "midnight": (0, 0, 0)]
        if let time = named[first] {
            words.removeFirst()
            return time
        }
        // "6 pm" is two words.
        let second = words.dropFirst().first.flatMap { ["am", "pm"].contains($0) ? $0 : nil }
        let pattern = /(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?(am|pm)?/
        guard let match = (String(first) + (second ?? "")).wholeMatch(of: pattern)?.output,
            match.2 != nil || match.4 != nil, var hour = Int(match.1)
        else { return nil }
        if let half = match.4 {
            guard (1...12).contains(hour) else { return nil }
            hour = hour % 12 + (half == "pm" ? 12 : 0)
        }
        words.removeFirst(second == nil ? 1 : 2)
        return (hour, match.2.flatMap { Int($0) } ?? 0, match.3.flatMap { Int($0) } ?? 0)
    }

    private func lastTime(_ time: TimeOfDay) -> Date? {
        [0, -1].lazy.compactMap { date(day(at: $0), time, calendar) }.first { $0 <= now }
    }

    private func day(at offset: Int) -> DateComponents {
        let date = calendar.date(byAdding: .day, value: offset, to: now) ?? now
        return calendar.dateComponents([.year, .month, .day], from: date)
    }

    private func takeDay(_ words: inout ArraySlice<Substring>) -> DateComponents? {
        guard let word = words.first else { return nil }
        if let offset = word == "today" ? 0 : word == "yesterday" ? -1 : nil {
            words.removeFirst()
            return day(at: offset)
        }
        if let weekday = Self.index(of: word, in: Self.weekdays) {
            words.removeFirst()
            let today = calendar.component(.weekday, from: now) - 1
            return day(at: -((today - weekday + 6) % 7 + 1))
        }
        if let match = word.wholeMatch(of: /(\d{4})-(\d{2})-(\d{2})/)?.output {
            words.removeFirst()
            return DateComponents(year: Int(match.1), month: Int(match.2), day: Int(match.3))
        }
        return takeDayOfMonth(&words)
    }

    /// Such as "20 November", "Nov 20" and "20 nov 2026".
    private func takeDayOfMonth(_ words: inout ArraySlice<Substring>) -> DateComponents? {
        let two = words.prefix(2)
        guard two.count == 2,
            let month = two.lazy.compactMap({ Self.index(of: $0, in: Self.months) }).first,
            let day = two.lazy.compactMap({ Int($0) }).first
        else { return nil }
        words.removeFirst(2)
        var all = DateComponents(month: month + 1, day: day)
        if let year = words.first, year.wholeMatch(of: /\d{4}/) != nil {
            words.removeFirst()
            all.year = Int(year)
            return all
        }
        let this = calendar.component(.year, from: now)
        // The 29th of February may be years ago.
        all.year = (0...8).lazy.map { this - $0 }.first { year in
            var candidate = all
            candidate.year = year
            return date(candidate, (0, 0, 0), calendar).map { $0 <= now } ?? false
        }
        return all.year == nil ? nil : all
    }

    private static let weekdays = [
        "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
    ]
    private static let months = [
        "january", "february", "march", "april", "may", "june", "july", "august", "september",
        "october", "november", "december",
    ]

    /// The place of the name that the word is, or begins with at least three letters.
    private static func index(of word: Substring, in names: [String]) -> Int? {
        guard word.count >= 3 else { return nil }
        return names.firstIndex { $0.hasPrefix(word) }
    }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { isASCII && isNumber }
}
