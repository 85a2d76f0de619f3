// SPDX-License-Identifier: Apache-2.0

/// A picture of text: so many rows, each of so many columns. A value; a ``Terminal`` shows it.
public struct Frame: Hashable, Sendable {
    /// The width in columns.
    public let columns: Int
    /// Each as wide as the frame.
    public private(set) var lines: [Line]
    /// The height in rows.
    public var rows: Int { lines.count }

    /// - Parameters:
    ///   - lines: Too long ones are cut, and too many left out.
    ///   - columns: The width.
    ///   - rows: The height; nil for the number of lines.
    ///   - ground: How it looks where nothing else is said.
    public init(_ lines: [Line], columns: Int, rows: Int? = nil, ground: Style = .plain) {
        self.columns = max(0, columns)
        let rows = max(0, rows ?? lines.count)
        let missing = [Line](repeating: "", count: max(0, rows - lines.count))
        self.lines = (lines.prefix(rows) + missing).map {
            $0.fitted(to: max(0, columns), over: ground)
        }
    }

    /// The two beside each other, with a rule between them; as high as the higher one.
    public func beside(_ other: Frame) -> Frame {
        let rule = Line("│", .dim)
        let lines = (0..<max(rows, other.rows)).map { row in
            line(row) + rule + other.line(row)
        }
        return Frame(lines, columns: columns + 1 + other.columns)
    }

    /// The two, one upon the other; as wide as the wider one.
    public func above(_ other: Frame) -> Frame {
        Frame(lines + other.lines, columns: max(columns, other.columns))
    }

    private func line(_ row: Int) -> Line {
        row < rows ? lines[row] : Line("").fitted(to: columns, over: .plain)
    }

    /// Without styles, and without the spaces at the ends of lines.
    public var text: String {
        lines.map { line in
            var text = line.text
            while text.last == " " { text.removeLast() }
            return text
        }.joined(separator: "\n")
    }

    /// The bytes that make a terminal of this size show it, from its first row on.
    public var bytes: [UInt8] {
        let rows = lines.map { line in
            line.spans.map { $0.style.escape + $0.text }.joined() + Style.plain.escape + "\u{1B}[K"
        }
        return Array(("\u{1B}[H" + rows.joined(separator: "\r\n") + "\u{1B}[J").utf8)
    }
}
