// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// What a watch has shown, and which changes are new to it.
struct Watch {
    private(set) var known: [Key: PropertyListValue]
    private var remaining: Int?
    private let last: String?
    private(set) var isOver = false

    /// - Parameters:
    ///   - count: How many changes end it; nil: none do.
    ///   - last: The key whose change ends it.
    init(known: [Key: PropertyListValue], count: Int?, until last: String?) {
        self.known = known
        remaining = count
        self.last = last
    }

    struct Change: Equatable {
        var key: Key
        /// Nil: the key is gone.
        var value: PropertyListValue?
        var origin: UbiquityChange.Origin
    }

    /// The news' keys that are not as they were shown last. A refusal is shown in any case: there
    /// the news is that nothing changed.
    mutating func changes(
        _ news: UbiquityChange, in values: [Key: PropertyListValue]
    ) -> [Change] {
        var changes: [Change] = []
        for key in news.keys.compactMap({ try? Key($0) }).sorted() where !isOver {
            guard known[key] != values[key] || news.origin == .quotaViolation else { continue }
            known[key] = values[key]
            changes.append(Change(key: key, value: values[key], origin: news.origin))
            take(key)
        }
        return changes
    }

    private mutating func take(_ key: Key) {
        remaining = remaining.map { $0 - 1 }
        if remaining == 0 || key.string == last { isOver = true }
    }
}

extension Watch.Change {
    private static let valueCharactersMax = 200

    /// A line for people; a change elsewhere is the rule and needs no word.
    var text: TerminalText {
        let key = TerminalText(JSON.escaped(key.string))
        let change = value.map { "= \($0.line(Self.valueCharactersMax))" } ?? "removed"
        let note: TerminalText = origin == .elsewhere ? "" : "  (\(origin.phrase))"
        return "\(Output.styled(key, .bold)) \(change)\(Output.styled(note, .dim))"
    }
}
