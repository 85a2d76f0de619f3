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

    /// A link's code; nil if the output is no terminal that has room for it, and more than ASCII.
    static func picture(of link: String, columns: Int? = Output.columns) -> TerminalText? {
        columns.flatMap { fitting(link, columns: $0) }?.terminalLines
    }

    /// Nil if the link is too long, the terminal too narrow, or its characters are only ASCII.
    private static func fitting(_ link: String, columns: Int) -> QRCode? {
        guard Output.isUnicode, let code = QRCode(link), code.size + 8 <= columns else {
            return nil
        }
        return code
    }

    /// A command with a link that is also shown as a QR code, if that fits.
    /// - Parameter noun: What the link is.
    static func block(command: String, link: String, noun: String = "link") -> TerminalText {
        let columns = Output.columns ?? Output.errorColumns ?? .max
        guard let code = fitting(link, columns: columns) else {
            return "or with the \(noun):\n\n    \(command)\n"
        }
        return
            "or with the \(noun), which the QR code contains:\n\n    \(command)\n\n\(code.terminalLines)\n"
    }
}
