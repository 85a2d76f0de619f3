// SPDX-License-Identifier: Apache-2.0

/// The format of the demo's lines.
enum DemoScreen {
    private static let textColumns = 70

    static func chapter(_ text: String) {
        Output.print("\n\(Output.styled(TerminalText(text), .bold))")
    }

    /// Prints a step and its duration.
    static func done(_ text: String, _ duration: Duration) {
        let padding = String(repeating: " ", count: max(textColumns - Table.width(text), 1))
        let time = Phrase.duration(duration)
        let alignment = String(repeating: " ", count: max(8 - time.count, 0))
        Output.print(
            "  \(Output.styled("✓", .green)) \(text)\(padding)"
                + Output.styled("\(alignment)\(time)", .dim))
    }

    static func failed(_ text: String) {
        Output.print("  \(Output.styled("✗", .red)) \(text)")
    }

    static func remark(_ text: String) {
        Output.print("    \(Output.styled(TerminalText(text), .dim))")
    }
}
