// SPDX-License-Identifier: Apache-2.0

/// Text from anybody, shown to a person: what acts on a terminal or is not seen is written out.
extension StringProtocol {
    /// Whether there are characters that nothing may have in its name.
    package var hasControls: Bool { unicodeScalars.contains(where: \.isControl) }

    /// Every control character as an escape of JSON's, such as `\n` and `\u001b`.
    package func visible(keeping kept: Unicode.Scalar...) -> String {
        escaped { $0.isControl && !kept.contains($0) }
    }

    /// A name in a list: one that may be taken for another is followed by its escaped form, such as
    /// `аda (\u0430da)`.
    ///
    /// Such are the names that mix scripts, and those with accents or marks as characters of their
    /// own. Not those that are wholly of another script.
    package var listed: String {
        let shown = visible()
        return hasLookAlikes ? "\(shown) (\(escaped { !$0.isASCII || $0.isControl }))" : shown
    }

    /// The beginning of what is longer than so many Unicode scalars, with an ellipsis.
    package func clipped(to max: Int) -> String {
        guard utf8.count > max, unicodeScalars.dropFirst(max).first != nil else {
            return String(self)
        }
        var text = String.UnicodeScalarView(unicodeScalars.prefix(max))
        text.append("…")
        return String(text)
    }

    /// With JSON's escapes in the place of some characters.
    package func escaped(_ isEscaped: (Unicode.Scalar) -> Bool) -> String {
        guard unicodeScalars.contains(where: isEscaped) else { return String(self) }
        var result = ""
        for scalar in unicodeScalars {
            if isEscaped(scalar) {
                result += scalar.jsonEscape
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private var hasLookAlikes: Bool {
        var script: Substring?
        for scalar in unicodeScalars {
            guard let other = scalar.script else { continue }
            if let script, script != other { return true }
            script = other
        }
        return false
    }
}

extension Unicode.Scalar {
    /// A control or format character, or a separator of lines: it acts on what shows it, or is not
    /// seen.
    package var isControl: Bool {
        switch value {
        case 0x20...0x7E: false
        case ..<0xA0: true
        default:
            switch properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: true
            default: false
            }
        }
    }

    /// The escape of a JSON string.
    fileprivate var jsonEscape: String {
        switch self {
        case "\"": "\\\""
        case "\\": "\\\\"
        case "\n": "\\n"
        case "\t": "\\t"
        case "\r": "\\r"
        default:
            UTF16.encode(self)!.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined()
        }
    }

    /// The first word of the character's name, which is that of its script for a letter, and
    /// COMBINING for an accent of its own; nil: it is neither letter nor mark, or of a script that is
    /// mixed with others as a rule.
    fileprivate var script: Substring? {
        let isMark = properties.generalCategory == .nonspacingMark
        guard properties.isAlphabetic || isMark, self != "\u{FE0F}",
            let word = properties.name?.prefix(while: { $0 != " " && $0 != "-" }),
            !Self.mixedScripts.contains(word)
        else { return nil }
        return word
    }

    /// Those of East Asia, whose letters nobody takes for another script's.
    private static let mixedScripts: Set<Substring> = [
        "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC",
    ]
}
