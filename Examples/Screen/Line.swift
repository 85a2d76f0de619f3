// SPDX-License-Identifier: Apache-2.0

/// A line of text, parts of which may look differently.
///
/// Control characters become dots: what is shown came from other devices, and must not steer the
/// terminal.
public struct Line: Hashable, Sendable, ExpressibleByStringInterpolation {
    struct Span: Hashable, Sendable {
        var text: String
        var style: Style
    }

    private(set) var spans: [Span]

    /// A line of one look.
    public init(_ text: String, _ style: Style = .plain) {
        spans = text.isEmpty ? [] : [Span(text: text.withoutControls, style: style)]
    }

    /// A line without any styles.
    public init(stringLiteral text: String) { self.init(text) }

    /// The one, and then the other.
    public static func + (left: Line, right: Line) -> Line {
        var line = left
        line.spans += right.spans
        return line
    }

    /// Without the styles.
    public var text: String { spans.map(\.text).joined() }

    /// The number of a terminal's columns that it takes.
    public var columns: Int { spans.reduce(0) { $0 + $1.text.columns } }

    /// As wide as that: cut, with an ellipsis, or filled with spaces.
    func fitted(to width: Int, over ground: Style) -> Line {
        var line = columns > width ? clipped(to: width - 1) + Line("…", .dim) : self
        if width < 1 { line = Line("") }
        line.spans.append(
            Span(text: String(repeating: " ", count: max(0, width - line.columns)), style: .plain))
        for index in line.spans.indices {
            line.spans[index].style = line.spans[index].style.over(ground)
        }
        return line
    }

    private func clipped(to width: Int) -> Line {
        var (line, rest) = (Line(""), width)
        for span in spans {
            var part = Span(text: "", style: span.style)
            for character in span.text {
                guard rest >= character.columns else { return line.appending(part) }
                rest -= character.columns
                part.text.append(character)
            }
            line = line.appending(part)
        }
        return line
    }

    private func appending(_ span: Span) -> Line {
        var line = self
        line.spans.append(span)
        return line
    }
}

extension String {
    fileprivate var withoutControls: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.isControl ? "·" : $0 }))
    }

    /// The number of a terminal's columns that it takes.
    var columns: Int { reduce(0) { $0 + $1.columns } }
}

extension Character {
    /// East Asian letters and pictures take two.
    var columns: Int {
        guard let scalar = unicodeScalars.first else { return 0 }
        let isWide =
            switch scalar.value {
            case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF,
                0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
                true
            default:
                scalar.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}")
            }
        return isWide ? 2 : 1
    }
}

extension Unicode.Scalar {
    fileprivate var isControl: Bool {
        switch properties.generalCategory {
        // Format includes what turns the direction of all that follows.
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: value != 0x200D
        default: false
        }
    }
}
