// SPDX-License-Identifier: Apache-2.0

extension QRCode {
    /// Dark on light, whatever the terminal's colours, if colours may be used.
    var terminalLines: TerminalText {
        TerminalText(
            lines: lines.map { line in
                Output.hasColour
                    ? "\u{1B}[38;5;231;48;5;16m\(line)\u{1B}[0m" : TerminalText(line)
            })
    }

    /// A link as a QR code between empty lines; empty if it is too long, or the terminal too narrow.
    static func block(of link: String) -> TerminalText {
        guard let code = QRCode(link), code.size + 8 <= Output.columns ?? .max else { return "" }
        return "\n\(code.terminalLines)\n"
    }
}
