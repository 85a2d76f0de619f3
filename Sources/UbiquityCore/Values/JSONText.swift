// SPDX-License-Identifier: Apache-2.0

/// Parses JSON (RFC 8259, UTF-8) into a value. A null counts as absent.
///
/// An app waits for the file read with it at every start, and just the first look-up of `Codable`
/// conformances takes longer than all of this.
package struct JSONText {
    private let bytes: [UInt8]
    private var place = 0

    /// - Returns: Nil for a null.
    /// - Throws: ``JSONError``, also for containers nested deeper than
    ///   ``PropertyListValue/depthMax``.
    package static func value(
        of bytes: some Sequence<UInt8>
    ) throws(JSONError) -> PropertyListValue? {
        var text = JSONText(bytes: Array(bytes))
        if text.bytes.starts(with: byteOrderMark) { text.place = byteOrderMark.count }
        let value = try text.value(depth: 1)
        text.skipSpace()
        guard text.place == text.bytes.count else { throw JSONError() }
        return value
    }

    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private mutating func value(depth: Int) throws(JSONError) -> PropertyListValue? {
        guard depth <= PropertyListValue.depthMax else { throw JSONError() }
        skipSpace()
        switch peek {
        case UInt8(ascii: "{"): return .dictionary(try members(depth))
        case UInt8(ascii: "["): return .array(try elements(depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"):
            try word("true")
            return .boolean(true)
        case UInt8(ascii: "f"):
            try word("false")
            return .boolean(false)
        case UInt8(ascii: "n"):
            try word("null")
            return nil
        default: return try number()
        }
    }

    // MARK: - Containers

    /// If a name occurs twice, the first one counts.
    private mutating func members(
        _ depth: Int
    ) throws(JSONError) -> [ExactString: PropertyListValue] {
        var members: [ExactString: PropertyListValue] = [:]
        try items(of: "{", "}") { text throws(JSONError) in
            let name = ExactString(try text.string())
            text.skipSpace()
            guard text.take(":") else { throw JSONError() }
            let value = try text.value(depth: depth + 1)
            if members[name] == nil { members[name] = value }
        }
        return members
    }

    private mutating func elements(_ depth: Int) throws(JSONError) -> [PropertyListValue] {
        var elements: [PropertyListValue] = []
        try items(of: "[", "]") { text throws(JSONError) in
            if let value = try text.value(depth: depth + 1) { elements.append(value) }
        }
        return elements
    }

    private mutating func items(
        of start: Unicode.Scalar, _ end: Unicode.Scalar,
        _ item: (inout JSONText) throws(JSONError) -> Void
    ) throws(JSONError) {
        try expect(start)
        skipSpace()
        if take(end) { return }
        repeat {
            skipSpace()
            try item(&self)
            skipSpace()
        } while take(",")
        try expect(end)
    }

    // MARK: - Strings and numbers

    private mutating func string() throws(JSONError) -> String {
        try expect("\"")
        var content: [UInt8] = []
        while true {
            let byte = try next()
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validating: content, as: UTF8.self) else {
                    throw JSONError()
                }
                return string
            case UInt8(ascii: "\\"): content += String(try escaped()).utf8
            case 0..<0x20: throw JSONError()
            default: content.append(byte)
            }
        }
    }

    /// The character after a backslash.
    private mutating func escaped() throws(JSONError) -> Character {
        switch Unicode.Scalar(try next()) {
        case "\"": "\""
        case "\\": "\\"
        case "/": "/"
        case "b": "\u{8}"
        case "f": "\u{C}"
        case "n": "\n"
        case "r": "\r"
        case "t": "\t"
        case "u": Character(try scalar())
        default: throw JSONError()
        }
    }

    /// A scalar above 16 bits is written as two escapes.
    private mutating func scalar() throws(JSONError) -> Unicode.Scalar {
        var number = try unit()
        if (0xD800..<0xDC00).contains(number) {
            try word("\\u")
            let low = try unit()
            guard (0xDC00..<0xE000).contains(low) else { throw JSONError() }
            number = 0x1_0000 + (number - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(number) else { throw JSONError() }
        return scalar
    }

    private mutating func unit() throws(JSONError) -> UInt32 {
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(try next())).hexDigitValue else {
                throw JSONError()
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// 1.0 is an integer too, because JSON does not distinguish them.
    private mutating func number() throws(JSONError) -> PropertyListValue {
        let start = place
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            _ = take("+") || take("-")
            try digits()
        }
        let text = String(decoding: bytes[start..<place], as: UTF8.self)
        if let integer = Int64(text) { return .integer(integer) }
        guard let real = Double(text), real.isFinite else { throw JSONError() }
        return Int64(exactly: real).map(PropertyListValue.integer) ?? .real(real)
    }

    /// At least one.
    private mutating func digits() throws(JSONError) {
        let start = place
        while let peek, peek.isDigit { place += 1 }
        guard place > start else { throw JSONError() }
    }

    // MARK: - Bytes

    private var peek: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func next() throws(JSONError) -> UInt8 {
        guard let peek else { throw JSONError() }
        place += 1
        return peek
    }

    private mutating func skipSpace() {
        while let peek, [0x20, 0x09, 0x0A, 0x0D].contains(peek) { place += 1 }
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard peek == UInt8(ascii: scalar) else { return false }
        place += 1
        return true
    }

    private mutating func expect(_ scalar: Unicode.Scalar) throws(JSONError) {
        guard take(scalar) else { throw JSONError() }
    }

    private mutating func word(_ word: String) throws(JSONError) {
        for scalar in word.unicodeScalars { try expect(scalar) }
    }
}

/// The text is not JSON.
package struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String { "it is not JSON" }
}
