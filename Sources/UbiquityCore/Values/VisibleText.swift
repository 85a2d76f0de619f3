// SPDX-License-Identifier: Apache-2.0

/// Displays untrusted text: characters that are invisible or act on a terminal are escaped.
extension StringProtocol {
    /// Whether there are control characters, which no name may contain.
    package var hasControls: Bool { unicodeScalars.contains { $0.isControl } }

    /// Escapes every control character as JSON does, such as `\n` and `\u001b`.
    package func visible(keeping kept: Unicode.Scalar...) -> String {
        escaped { $0.isControl && !kept.contains($0) }
    }

    /// A name for a list. A name that may be mistaken for another is followed by its escaped form,
    /// such as `аda (\u0430da)`.
    ///
    /// These are names that mix scripts, or that have accents or marks as separate characters.
    /// Names wholly in another script are not.
    package var listed: String {
        let shown = visible()
        return hasLookAlikes ? "\(shown) (\(escaped { !$0.isASCII || $0.isControl }))" : shown
    }

    /// The text, shortened to this many Unicode scalars and an ellipsis if it is longer.
    package func clipped(to max: Int) -> String {
        let kept = unicodeScalars.prefix(max)
        if kept.endIndex == endIndex { return String(self) }
        return String(String.UnicodeScalarView(kept)) + "…"
    }

    /// Replaces some characters by JSON escapes.
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
    /// A control or format character, or a line separator: it acts on the display, or is invisible.
    package var isControl: Bool {
        switch value {
        case 0x20...0x7E: false
        // By number: Unicode's table of categories would be a tenth of the engine in WebAssembly.
        case ..<0xA0, 0xAD, 0x600...0x605, 0x61C, 0x6DD, 0x70F, 0x890...0x891, 0x8E2, 0x180E,
            0x200B...0x200F, 0x2028...0x202E, 0x2060...0x2064, 0x2066...0x206F, 0xFEFF,
            0xFFF9...0xFFFB, 0x110BD, 0x110CD, 0x13430...0x1343F, 0x1BCA0...0x1BCA3,
            0x1D173...0x1D17A, 0xE0001, 0xE0020...0xE007F:
            true
        default: false
        }
    }

    /// The character's escape in a JSON string.
    fileprivate var jsonEscape: String {
        switch self {
        case "\"": "\\\""
        case "\\": "\\\\"
        case "\n": "\\n"
        case "\t": "\\t"
        case "\r": "\\r"
        default:
            UTF16.encode(self)!.reduce("") { text, unit in
                let digits = String(unit, radix: 16)
                return text + "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            }
        }
    }

    /// The first word of the character's name: for a letter its script, and COMBINING for a
    /// separate accent. Nil for anything but letters and marks, and for scripts that are commonly
    /// mixed with others.
    fileprivate var script: Substring? {
        let isMark = properties.generalCategory == .nonspacingMark
        guard properties.isAlphabetic || isMark, self != "\u{FE0F}",
            let word = properties.name?.prefix(while: { $0 != " " && $0 != "-" }),
            !Self.mixedScripts.contains(word)
        else { return nil }
        return word
    }

    /// East Asian scripts, whose letters nobody mistakes for those of others.
    private static let mixedScripts: Set<Substring> = [
        "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC",
    ]
}

extension UInt8 {
    /// ASCII only.
    var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

    /// ASCII only, in either case.
    var isAlphanumeric: Bool {
        isDigit || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20)
    }
}
