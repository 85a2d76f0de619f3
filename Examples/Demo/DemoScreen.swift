// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The format of the demo's lines.
enum DemoScreen {
    private static let textColumns = 70

    static func chapter(_ text: String) { print("\n" + styled(text, bold)) }

    /// Prints a step and its duration.
    static func done(_ text: String, _ duration: Duration) {
        let padding = String(repeating: " ", count: max(textColumns - text.count, 1))
        let time = Self.text(duration)
        let alignment = String(repeating: " ", count: max(8 - time.count, 0))
        print("  \(styled("✓", green)) \(text)\(padding)" + styled(alignment + time, dim))
    }

    static func failed(_ text: String) { print("  \(styled("✗", red)) \(text)") }

    static func remark(_ text: String) { print("    " + styled(text, dim)) }

    /// Prints a line at once, whoever reads it.
    static func print(_ line: String) {
        Swift.print(line)
        fflush(nil)
    }

    /// For example "3.4 ms" or "1.25 s".
    static func text(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        return seconds < 1
            ? String(format: seconds < 0.1 ? "%.1f ms" : "%.0f ms", seconds * 1_000)
            : String(format: "%.2f s", seconds)
    }

    private static let (bold, dim, red, green) = ("1", "2", "31", "32")

    private static func styled(_ text: String, _ style: String) -> String {
        let isPlain = ProcessInfo.processInfo.environment["NO_COLOR"] != nil
        return isatty(STDOUT_FILENO) == 0 || isPlain ? text : "\u{1B}[\(style)m\(text)\u{1B}[0m"
    }
}
