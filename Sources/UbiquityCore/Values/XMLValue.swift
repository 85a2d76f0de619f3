// SPDX-License-Identifier: Apache-2.0

/// The elements of a property list in XML that contain text, and their values.
enum XMLValue {
    static let elements: Set = [
        "key", "string", "integer", "real", "true", "false", "date", "data",
    ]

    static func isBlank(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// The required form of an element, for a sentence.
    static func article(_ name: String) -> String {
        switch name {
        case "integer": "an integer of at most 64 bits"
        case "real": "a real number"
        case "date": "a date such as 2026-11-21T10:00:00Z"
        case "data": "data in base64"
        default: "empty, as <\(name)> must be"
        }
    }

    /// - Parameter content: The bytes of the text.
    /// - Returns: Nil for a text that is not a value of this element.
    static func value(
        of name: String, _ text: String, _ content: [UInt8]
    ) -> PropertyListValue? {
        if name == "string" { return .string(text) }
        if name == "data" {
            return Base64.decode(content.filter { !isBlank($0) }).map(PropertyListValue.data)
        }
        let first = content.firstIndex { !isBlank($0) } ?? content.endIndex
        let last = content.lastIndex { !isBlank($0) } ?? first
        let trimmed = String(decoding: content[first...].prefix(last - first + 1), as: UTF8.self)
        return switch name {
        case "true", "false": trimmed.isEmpty ? .boolean(name == "true") : nil
        case "integer": integer(trimmed)
        case "real": real(trimmed)
        case "date":
            trimmed.hasSuffix("Z") && trimmed.utf8.allSatisfy { !" .,".utf8.contains($0) }
                ? DateText.seconds(of: trimmed).map(PropertyListValue.date) : nil
        default: nil
        }
    }

    /// Decimal, or hexadecimal after `0x`.
    private static func integer(_ text: String) -> PropertyListValue? {
        let isNegative = text.hasPrefix("-")
        var digits = text[...]
        if isNegative || text.hasPrefix("+") { digits.removeFirst() }
        let isHexadecimal = digits.lowercased().hasPrefix("0x")
        if isHexadecimal { digits.removeFirst(2) }
        guard digits.first?.isHexDigit == true,
            let number = UInt64(digits, radix: isHexadecimal ? 16 : 10)
        else { return nil }
        guard isNegative else { return PropertyListValue(unsigned: number) }
        return number <= UInt64(Int64.max) + 1 ? .integer(Int64(bitPattern: 0 &- number)) : nil
    }

    private static func real(_ text: String) -> PropertyListValue? {
        var word = text.lowercased()[...]
        let isNegative = word.hasPrefix("-")
        if isNegative || word.hasPrefix("+") { word.removeFirst() }
        if word == "nan" { return .real(.nan) }
        if word == "inf" || word == "infinity" {
            return .real(isNegative ? -.infinity : .infinity)
        }
        // Swift has hexadecimal numbers and other names too.
        guard word.first.map({ $0 == "." || $0.isNumber }) == true,
            word.utf8.allSatisfy({ "0123456789.e+-".utf8.contains($0) }),
            let number = Double(isNegative ? "-" + word : word), number.isFinite
        else { return nil }
        return .real(number)
    }
}
