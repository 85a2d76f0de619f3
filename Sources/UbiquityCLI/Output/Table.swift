// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Rows with aligned columns. Each row that a terminal would wrap is a paragraph instead, with a line
/// for each column.
struct Table {
    /// The text of a value, of at most this many columns of a terminal; nil for all of it.
    typealias Value = @Sendable (_ columnsMax: Int?) -> String

    var header: [String]
    var rows: [[String]]
    /// What the last columns have in each row: values, shortened to fit.
    var values: [[Value]] = []

    private static let valueColumnsMin = 16
    private static let gap = 2

    func print() { Output.print(TerminalText(lines: lines(columns: Output.columns))) }

    /// - Parameter columns: Those of the terminal; nil if there is none. Nothing is shortened then, and
    ///   no value is padded to the longest.
    func lines(columns: Int? = nil) -> [TerminalText] {
        let texts = rows.map { $0.map { $0.visible() } }
        guard let columns else { return aligned(cells(texts, nil), padsValues: false) }
        let valueCount = values.first?.count ?? 0
        let used = header.indices.dropLast(valueCount).reduce(Self.gap * (header.count - 1)) {
            $0 + Self.width(of: $1, in: [header] + texts)
        }
        let room = valueCount == 0 ? nil : (columns - used) / valueCount
        guard used <= columns, room ?? .max >= Self.valueColumnsMin else {
            return paragraphs(texts, columns)
        }
        return aligned(cells(texts, room))
    }

    private func cells(_ texts: [[String]], _ room: Int?) -> [[String]] {
        guard !values.isEmpty else { return texts }
        return zip(texts, values).map { $0 + $1.map { $0(room) } }
    }

    private func aligned(_ rows: [[String]], padsValues: Bool = true) -> [TerminalText] {
        let valuesStart = header.count - (padsValues ? 0 : values.first?.count ?? 0)
        let widths = header.indices.map { column in
            column < valuesStart ? Self.width(of: column, in: [header] + rows) : 0
        }
        return [Output.styled(Self.line(header, widths), .bold)]
            + rows.map { Self.line($0, widths) }
    }

    private func paragraphs(_ texts: [[String]], _ columns: Int) -> [TerminalText] {
        let labels = header.dropFirst()
        let width = labels.map(Self.width).max() ?? 0
        let room = max(Self.valueColumnsMin, columns - width - 2 * Self.gap)
        return cells(texts, room).flatMap { row in
            [Output.styled(TerminalText(row.first ?? ""), .bold)]
                + zip(labels, row.dropFirst()).map { label, cell in
                    "  \(Output.styled("\(Self.padded(label, width))", .dim))  \(cell)"
                }
        }
    }

    private static func line(_ cells: [String], _ widths: [Int]) -> TerminalText {
        let padded = zip(cells, widths).dropLast().map { Self.padded($0, $1) }
        return TerminalText((padded + [cells.last ?? ""]).joined(separator: "  "))
    }

    private static func padded(_ cell: String, _ width: Int) -> String {
        cell + String(repeating: " ", count: max(0, width - self.width(cell)))
    }

    private static func width(of column: Int, in rows: [[String]]) -> Int {
        rows.map { width($0[column]) }.max() ?? 0
    }

    /// The width in terminal columns: most East Asian characters and emoji take two.
    static func width(_ text: some StringProtocol) -> Int { text.reduce(0) { $0 + width($1) } }

    /// As much of the text as fits, with an ellipsis if that is not all.
    static func clipped(_ text: String, to columnsMax: Int) -> String {
        var (columns, end) = (0, text.startIndex)
        for index in text.indices {
            columns += width(text[index])
            if columns <= columnsMax - 1 { end = text.index(after: index) }
            if columns > columnsMax { return text[..<end] + "…" }
        }
        return text
    }

    private static func width(_ character: Character) -> Int {
        character.unicodeScalars.contains(where: isWide) ? 2 : 1
    }

    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE4F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F,
            0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            true
        default: false
        }
    }
}
