// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// Keeps track of what a watch has shown, to find the changes that are new.
struct Watch {
    private(set) var known: [Key: PropertyListValue]
    private let keys: Set<Key>
    private var remaining: Int?
    private let last: String?
    private(set) var isOver = false

    /// - Parameters:
    ///   - keys: The keys to watch; all if there are none.
    ///   - count: The number of changes after which the watch ends; nil for no limit.
    ///   - last: The key whose change ends the watch.
    init(
        known: [Key: PropertyListValue], keys: Set<Key> = [], count: Int?, until last: String?
    ) {
        self.known = known
        self.keys = keys
        remaining = count
        self.last = last
    }

    struct Change: Equatable {
        var key: Key
        /// Nil if the key was removed.
        var value: PropertyListValue?
        /// Nil if it is not a change, but the value at the beginning.
        var origin: UbiquityChange.Origin?
    }

    /// The present values of the watched keys, sorted by key.
    var initial: [Change] {
        known.filter { isWatched($0.key) }.sorted { $0.key < $1.key }
            .map { Change(key: $0.key, value: $0.value, origin: nil) }
    }

    private func isWatched(_ key: Key) -> Bool { keys.isEmpty || keys.contains(key) }

    /// The changed keys whose value differs from what was last shown. A refusal is always shown,
    /// because its news is that nothing changed.
    mutating func changes(
        _ news: UbiquityChange, in values: [Key: PropertyListValue]
    ) -> [Change] {
        var changes: [Change] = []
        for key in news.keys.compactMap({ try? Key($0) }).sorted() where !isOver && isWatched(key) {
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
    private static let valueColumnsMin = 16

    /// A line for people. The most common origin, another device, is not mentioned.
    var text: TerminalText { text(columns: Output.columns) }

    func text(columns: Int?) -> TerminalText {
        let key = TerminalText(JSON.escaped(key.string))
        let phrase = origin == .elsewhere ? nil : origin?.phrase
        let note: TerminalText = phrase.map { "  (\($0))" } ?? ""
        let used = Table.width(key.string) + " = ".count + note.string.count
        let room = columns.map { max(Self.valueColumnsMin, $0 - used) }
        let change = value.map { "= \($0.line(room))" } ?? "removed"
        return "\(Output.styled(key, .bold)) \(change)\(Output.styled(note, .dim))"
    }
}

extension UbiquityChange.Origin {
    /// The word in the JSON of `watch`.
    var word: String {
        switch self {
        case .own: "own"
        case .elsewhere: "server"
        case .initialSync: "initial-sync"
        case .quotaViolation: "quota"
        case .accountChange: "account"
        }
    }

    var phrase: String {
        switch self {
        case .own: "changed here"
        case .elsewhere: "changed elsewhere"
        case .initialSync: "first download"
        case .quotaViolation: "refused by the server"
        case .accountChange: "account changed"
        }
    }
}
