// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Rows with aligned columns. The last column has any length.
struct Table {
    var header: [String]
    var rows: [[String]]

    var lines: [TerminalText] {
        let rows = rows.map { $0.map { $0.visible() } }
        let widths = header.indices.map { column in
            ([header] + rows).map { Self.width($0[column]) }.max() ?? 0
        }
        return [Output.styled(Self.line(header, widths), .bold)]
            + rows.map { Self.line($0, widths) }
    }

    func print() { Output.print(TerminalText(lines: lines)) }

    private static func line(_ cells: [String], _ widths: [Int]) -> TerminalText {
        let padded = zip(cells, widths).dropLast().map { cell, width in
            cell + String(repeating: " ", count: width - Self.width(cell))
        }
        return TerminalText((padded + [cells.last ?? ""]).joined(separator: "  "))
    }

    /// The width in terminal columns: most East Asian characters and emoji take two.
    static func width(_ text: String) -> Int {
        text.reduce(0) { $0 + ($1.unicodeScalars.contains(where: Self.isWide) ? 2 : 1) }
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
