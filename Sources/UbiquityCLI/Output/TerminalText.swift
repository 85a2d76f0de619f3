// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Text that is safe to print on a terminal. Only this program's own literals and styles may
/// contain control sequences; interpolated text, line breaks included, is escaped by
/// ``visible(keeping:)``.
struct TerminalText: Hashable, ExpressibleByStringInterpolation {
    fileprivate(set) var string: String

    /// One line of untrusted text.
    init(_ text: some StringProtocol) { string = text.visible() }

    /// Several lines of untrusted text.
    init(lines text: some StringProtocol) { string = text.visible(keeping: "\n", "\t") }

    init(lines: [TerminalText]) { string = lines.map(\.string).joined(separator: "\n") }

    init(stringLiteral text: String) { string = text }
    init(stringInterpolation: Interpolation) { string = stringInterpolation.string }

    struct Interpolation: StringInterpolationProtocol {
        fileprivate var string = ""

        init(literalCapacity: Int, interpolationCount: Int) {
            string.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        mutating func appendLiteral(_ literal: String) { string += literal }
        mutating func appendInterpolation(_ text: TerminalText) { string += text.string }
        mutating func appendInterpolation(_ value: some Any) { string += "\(value)".visible() }
    }

    static func + (a: TerminalText, b: TerminalText) -> TerminalText {
        var sum = a
        sum.string += b.string
        return sum
    }
}
