// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// A key's value before and after, for the commands that compare.
struct ValueChange: Hashable {
    var key: Key
    var before: PropertyListValue?
    var after: PropertyListValue?

    /// The keys whose values differ, sorted.
    static func all(
        from before: [Key: PropertyListValue], to after: [Key: PropertyListValue],
        without left: Set<Key> = []
    ) -> [ValueChange] {
        Set(before.keys).union(after.keys).subtracting(left).sorted().compactMap { key in
            before[key] == after[key]
                ? nil : ValueChange(key: key, before: before[key], after: after[key])
        }
    }

    /// The contents that the changes give to the keys.
    static func contents(_ changes: [ValueChange]) -> [Key: Content] {
        Dictionary(changes.map { ($0.key, $0.after.map(Content.value) ?? .deleted) }) { $1 }
    }

    private static let valueCharactersMax = 60

    /// A line for people, such as `~ theme  "light" → "dark"`.
    func line(keyColumns: Int) -> TerminalText {
        let name = JSON.escaped(key.string)
        let padding = String(repeating: " ", count: max(0, keyColumns - Table.width(name)))
        let texts = [before, after].map { $0.map { $0.line(Self.valueCharactersMax) } }
        let (sign, style): (TerminalText, Output.Style?) =
            switch (texts[0], texts[1]) {
            case (nil, _): ("+", .green)
            case (_, nil): ("-", .red)
            default: ("~", nil)
            }
        let values = texts.compactMap(\.self).joined(separator: " → ")
        return "\(style.map { Output.styled(sign, $0) } ?? sign) \(name)\(padding)  \(values)"
    }

    static func lines(_ changes: [ValueChange], indent: TerminalText = "") -> TerminalText {
        let columns = changes.map { Table.width(JSON.escaped($0.key.string)) }.max() ?? 0
        return TerminalText(lines: changes.map { indent + $0.line(keyColumns: columns) })
    }

    /// For example "1 key is overwritten, 2 keys are new".
    static func summary(_ changes: [ValueChange]) -> String {
        let new = changes.count { $0.before == nil }
        let parts = [(changes.count - new, "overwritten"), (new, "new")]
        return parts.filter { $0.0 > 0 }.map { count, word in
            "\(Phrase.keys(count)) \(count == 1 ? "is" : "are") \(word)"
        }.joined(separator: ", ")
    }

    /// Prints that some keys are left out of a comparison with the past.
    static func noteUnknownPast(of keys: [Key]) {
        guard !keys.isEmpty else { return }
        Output.note(
            "Not compared, because their earlier values are no longer known: \(Phrase.names(keys))")
    }

    var json: JSON {
        [
            "key": .string(key.string), "before": before.map(JSON.value) ?? .null,
            "after": after.map(JSON.value) ?? .null,
        ]
    }
}
