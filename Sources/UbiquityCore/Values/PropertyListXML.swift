// SPDX-License-Identifier: Apache-2.0

/// The XML format of a property list, which any program on Apple's systems and every text editor
/// can read.
///
/// It cannot represent all values, see ``XMLCompatibility``.
package enum PropertyListXML {
    /// - Returns: Nil for a value that XML cannot represent at all.
    /// - Complexity: O(*n*) in the size of the value; the stack grows with its depth.
    package static func encode(_ value: PropertyListValue) -> [UInt8]? {
        guard XMLCompatibility.canHold(value) else { return nil }
        var bytes = Array(head.utf8)
        write(value, indent: 0, to: &bytes)
        bytes += "</plist>\n".utf8
        return bytes
    }

    private static let head = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
        "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">

        """

    /// Deeper levels are indented like this one: their blanks would be most of the text.
    private static let indentMax = 16

    private static func write(
        _ value: PropertyListValue, indent: Int, to bytes: inout [UInt8]
    ) {
        bytes += repeatElement(UInt8(ascii: "\t"), count: min(indent, indentMax))
        switch value {
        case .string(let string): write("string", string.string, to: &bytes)
        case .boolean(let boolean): bytes += (boolean ? "<true/>\n" : "<false/>\n").utf8
        case .integer(let integer): write("integer", "\(integer)", to: &bytes)
        case .unsigned(let unsigned): write("integer", "\(unsigned)", to: &bytes)
        case .real(let real): write("real", text(of: real), to: &bytes)
        case .date(let seconds):
            write("date", DateText.text(of: seconds.rounded(.down)), to: &bytes)
        case .sealed(let box): write(.data(box.bytes), indent: 0, to: &bytes)
        case .data(let data):
            bytes += "<data>".utf8
            bytes += Base64.encode(data)
            bytes += "</data>\n".utf8
        case .array(let values):
            container("array", isEmpty: values.isEmpty, indent, to: &bytes) { bytes in
                for value in values { write(value, indent: indent + 1, to: &bytes) }
            }
        case .dictionary(let entries):
            container("dict", isEmpty: entries.isEmpty, indent, to: &bytes) { bytes in
                for (key, value) in entries.sorted(by: { $0.key < $1.key }) {
                    bytes += repeatElement(UInt8(ascii: "\t"), count: min(indent + 1, indentMax))
                    write("key", key.string, to: &bytes)
                    write(value, indent: indent + 1, to: &bytes)
                }
            }
        }
    }

    private static func container(
        _ name: String, isEmpty: Bool, _ indent: Int, to bytes: inout [UInt8],
        _ content: (inout [UInt8]) -> Void
    ) {
        if isEmpty {
            bytes += "<\(name)/>\n".utf8
            return
        }
        bytes += "<\(name)>\n".utf8
        content(&bytes)
        bytes += repeatElement(UInt8(ascii: "\t"), count: min(indent, indentMax))
        bytes += "</\(name)>\n".utf8
    }

    private static func write(_ name: String, _ text: String, to bytes: inout [UInt8]) {
        bytes += "<\(name)>".utf8
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "<"): bytes += "&lt;".utf8
            case UInt8(ascii: ">"): bytes += "&gt;".utf8
            case UInt8(ascii: "&"): bytes += "&amp;".utf8
            // As it is, readers take it for a line feed.
            case UInt8(ascii: "\r"): bytes += "&#13;".utf8
            default: bytes.append(byte)
            }
        }
        bytes += "</\(name)>\n".utf8
    }

    private static func text(of real: Double) -> String {
        if real.isFinite { return "\(real)" }
        return real.isNaN ? "nan" : real < 0 ? "-infinity" : "+infinity"
    }
}

/// Checks how the XML format of a property list represents values. It has no fractions of a second
/// and, to most of its readers, no negative zero and no years beyond four digits, and cannot represent
/// most control characters at all. Most of its readers take two keys for one that differ only in Unicode
/// normalisation.
package struct XMLCompatibility {
    /// The keys that cannot be written, or whose values cannot.
    package private(set) var impossible: [Key] = []
    /// The keys whose values would change.
    package private(set) var lossy: [Key] = []

    package init(_ values: [Key: PropertyListValue]) {
        let spellings = Dictionary(grouping: values.keys) { $0.string }
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            let isAmbiguous = spellings[key.string].map { $0.count > 1 } ?? false
            switch max(Self.damage(to: key.string), Self.damage(to: value)) {
            case .none where !isAmbiguous: break
            case .loss where !isAmbiguous: lossy.append(key)
            default: impossible.append(key)
            }
        }
    }

    static func canHold(_ value: PropertyListValue) -> Bool { damage(to: value) != .refusal }

    /// The years 0 to 9999, in seconds since 2001. Outside of them, the format has no agreed
    /// meaning.
    package static let firstSecond = -63_145_526_400.0
    package static let lastSecond = 252_423_993_599.0

    /// Whether a date is in those years.
    package static func hasCalendar(_ seconds: Double) -> Bool {
        seconds >= firstSecond && seconds < lastSecond + 1
    }

    private enum Damage: Comparable {
        case none, loss, refusal
    }

    private static func damage(to value: PropertyListValue) -> Damage {
        switch value {
        case .string(let string): damage(to: string.string)
        case .date(let seconds):
            if !DateText.hasDay(seconds) {
                .refusal
            } else {
                hasCalendar(seconds) && seconds == seconds.rounded() ? .none : .loss
            }
        case .array(let values): values.map(damage).max() ?? .none
        case .dictionary(let entries):
            if Set(entries.keys.map({ $0.string })).count != entries.count {
                .refusal
            } else {
                entries.map { max(damage(to: $0.key.string), damage(to: $0.value)) }.max() ?? .none
            }
        case .real(let real): real.bitPattern == (-0.0).bitPattern ? .loss : .none
        case .boolean, .integer, .unsigned, .data: .none
        case .sealed: .refusal
        }
    }

    private static func damage(to text: String) -> Damage {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\t", "\n", "\r": break
            case "\u{00}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": return .refusal
            default: break
            }
        }
        return .none
    }
}
