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

    private static let valueColumnsMin = 16
    private static let arrow = " → "

    /// For people, such as `~ theme  "light" → "dark"`; values that a terminal has no room for beside
    /// the key are on lines of their own.
    private func lines(_ name: String, keyColumns: Int, columns: Int?) -> [TerminalText] {
        let values = [before, after].compactMap(\.self)
        let (sign, style): (TerminalText, Output.Style?) =
            switch (before, after) {
            case (nil, _): ("+", .green)
            case (_, nil): ("-", .red)
            default: ("~", nil)
            }
        let start: TerminalText = "\(style.map { Output.styled(sign, $0) } ?? sign) "
        let used = "~ ".count + keyColumns + 2 + (values.count - 1) * Self.arrow.count
        let room = columns.map { ($0 - used) / max(1, values.count) }
        guard room ?? .max >= Self.valueColumnsMin else {
            let room = columns.map { max(Self.valueColumnsMin, $0 - 4 - Self.arrow.count) }
            let texts = values.enumerated().map { index, value in
                TerminalText("    " + value.line(room) + (index < values.count - 1 ? " →" : ""))
            }
            return [start + TerminalText(name)] + texts
        }
        let padding = String(repeating: " ", count: max(0, keyColumns - Table.width(name)))
        let text = values.map { $0.line(room) }.joined(separator: Self.arrow)
        return [start + TerminalText("\(name)\(padding)  \(text)")]
    }

    /// - Parameter columns: Those of the terminal; nil if there is none, and nothing is shortened.
    static func lines(
        _ changes: [ValueChange], indent: String = "", columns: Int? = Output.columns
    ) -> TerminalText {
        let names = KeyNames(changes.map(\.key))
        let shown = changes.map { names.shown($0.key) }
        let keyColumns = shown.map { Table.width($0) }.max() ?? 0
        let lines = zip(changes, shown).flatMap { change, name in
            change.lines(
                name, keyColumns: keyColumns, columns: columns.map { $0 - indent.count })
        }
        return TerminalText(lines: lines.map { TerminalText(indent) + $0 })
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
