// SPDX-License-Identifier: Apache-2.0

/// Reads JSON as a property list: integers stay integers, reals reals, and null is not a value. A key
/// that occurs twice in one object, for which JSON has no rule, is refused.
struct JSONReader {
    private let bytes: [UInt8]
    private var at: Int
    private var builder: ValueBuilder
    /// The brackets that are open.
    private var open: [UInt8] = []
    private var isFirst = true

    /// - Parameter bytes: Text in UTF-8.
    init(_ bytes: [UInt8], depthMax: Int, unsupported: ValueBuilder.Unsupported?) {
        self.bytes = bytes
        at = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        builder = ValueBuilder(bytes, depthMax: depthMax, unsupported: unsupported)
    }

    mutating func root() throws(PropertyListError) -> PropertyListValue {
        skipBlanks()
        try element()
        while let last = open.last {
            skipBlanks()
            let isObject = last == UInt8(ascii: "{")
            if take(isObject ? "}" : "]") {
                open.removeLast()
                builder.end()
                isFirst = false
                continue
            }
            guard isFirst || take(",") else {
                throw broken(
                    "neither a comma nor the end of \(isObject ? "an object" : "an array")")
            }
            skipBlanks()
            if isObject { try key() }
            try element()
        }
        skipBlanks()
        guard at == bytes.count, let root = builder.root else {
            throw broken("something behind the value")
        }
        return root
    }

    /// The beginning of an entry of the root.
    func offset(of key: ExactString) -> Int { builder.offsets[key] ?? 0 }

    mutating func place(_ offset: Int) -> PropertyListPlace { builder.place(offset) }

    private mutating func element() throws(PropertyListError) {
        let start = at
        guard at < bytes.count else { throw broken("it ends where a value should be") }
        isFirst = false
        switch bytes[at] {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            open.append(bytes[at])
            at += 1
            isFirst = true
            try builder.begin(isDictionary: open.last == UInt8(ascii: "{"), at: start)
        case UInt8(ascii: "\""):
            guard let text = try string() else {
                return try builder.fail("half of a surrogate pair is not text", at: start)
            }
            try builder.add(.string(text), at: start)
        default: try word(start)
        }
    }

    private mutating func key() throws(PropertyListError) {
        let start = at
        guard at < bytes.count, bytes[at] == UInt8(ascii: "\"") else {
            throw broken("no key in quotation marks")
        }
        guard let key = try string() else {
            throw broken("half of a surrogate pair is not text", at: start)
        }
        try builder.key(key, at: start)
        skipBlanks()
        guard take(":") else { throw broken("no colon behind a key") }
        skipBlanks()
    }

    /// A number, `true`, `false` or `null`.
    private mutating func word(_ start: Int) throws(PropertyListError) {
        let word = bytes[at...].prefix { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E: true
            default: false
            }
        }
        let text = String(decoding: word, as: UTF8.self)
        switch ExactString(text) {
        case "true": try builder.add(.boolean(true), at: start)
        case "false": try builder.add(.boolean(false), at: start)
        case "null": try builder.fail("null is not a value", at: start)
        default:
            guard let isReal = Self.isReal(word) else { throw broken("not a value of JSON") }
            if let value = Self.number(text, isReal: isReal) {
                try builder.add(value, at: start)
            } else if builder.isReal, let real = Self.number(text, isReal: true) {
                // JavaScript writes large reals without a point.
                try builder.add(real, at: start)
            } else {
                try builder.fail(
                    isReal ? "a number that is too large" : "an integer of more than 64 bits",
                    at: start)
            }
        }
        at = word.endIndex
    }

    private static func number(_ text: String, isReal: Bool) -> PropertyListValue? {
        if isReal { return Double(text).flatMap { $0.isFinite ? .real($0) : nil } }
        return Int64(text).map(PropertyListValue.integer)
            ?? UInt64(text).map(PropertyListValue.init(unsigned:))
    }

    /// Whether a number has a point or an exponent; nil for what is not a number in JSON.
    private static func isReal(_ word: ArraySlice<UInt8>) -> Bool? {
        var rest = word
        func digits() -> Bool {
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            rest = rest[digits.endIndex...]
            return !digits.isEmpty
        }
        if rest.first == UInt8(ascii: "-") { rest = rest.dropFirst() }
        let leadingZero = rest.first == UInt8(ascii: "0")
        let start = rest.startIndex
        guard digits(), !leadingZero || rest.startIndex == start + 1 else { return nil }
        var isReal = false
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            isReal = true
            guard digits() else { return nil }
        }
        if let byte = rest.first, "eE".utf8.contains(byte) {
            rest = rest.dropFirst()
            isReal = true
            if let sign = rest.first, "+-".utf8.contains(sign) { rest = rest.dropFirst() }
            guard digits() else { return nil }
        }
        return rest.isEmpty ? isReal : nil
    }

    // MARK: - Strings

    /// Nil for half of a surrogate pair, which no text can have.
    private mutating func string() throws(PropertyListError) -> String? {
        var (text, isText) = ([UInt8](), true)
        at += 1
        while at < bytes.count {
            let byte = bytes[at]
            guard byte >= 0x20 else { throw broken("a control character in a string") }
            if byte == UInt8(ascii: "\"") {
                at += 1
                return isText ? String(decoding: text, as: UTF8.self) : nil
            }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                at += 1
                continue
            }
            if let scalar = try escape() {
                text += UTF8.encode(scalar).map(Array.init) ?? []
            } else {
                isText = false
            }
        }
        throw broken("a string without end")
    }

    private static let escapes: [UInt8: Unicode.Scalar] = [
        UInt8(ascii: "\""): "\"", UInt8(ascii: "\\"): "\\", UInt8(ascii: "/"): "/",
        UInt8(ascii: "b"): "\u{8}", UInt8(ascii: "f"): "\u{C}", UInt8(ascii: "n"): "\n",
        UInt8(ascii: "r"): "\r", UInt8(ascii: "t"): "\t",
    ]

    /// Nil for half of a surrogate pair.
    private mutating func escape() throws(PropertyListError) -> Unicode.Scalar? {
        guard at + 1 < bytes.count else { throw broken("a string without end") }
        if let scalar = Self.escapes[bytes[at + 1]] {
            at += 2
            return scalar
        }
        let first = try unit()
        guard 0xD800..<0xDC00 ~= first else { return Unicode.Scalar(first) }
        guard at + 1 < bytes.count, bytes[at] == UInt8(ascii: "\\"),
            bytes[at + 1] == UInt8(ascii: "u")
        else { return nil }
        let second = try unit()
        guard 0xDC00..<0xE000 ~= second else { return nil }
        return Unicode.Scalar(0x10000 + (first & 0x3FF) << 10 + second & 0x3FF)
    }

    /// Reads `\u` and four digits.
    private mutating func unit() throws(PropertyListError) -> UInt32 {
        let digits = bytes[min(at + 2, bytes.count)...].prefix(4)
        let text = String(decoding: digits, as: UTF8.self)
        guard bytes[at + 1] == UInt8(ascii: "u"), digits.count == 4,
            digits.allSatisfy({ $0.isDigit || (0x61...0x66) ~= $0 | 0x20 }),
            let number = UInt32(text, radix: 16)
        else { throw broken("an escape that JSON does not have") }
        at += 6
        return number
    }

    // MARK: - Bytes

    private mutating func skipBlanks() {
        while at < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[at]) { at += 1 }
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard at < bytes.count, bytes[at] == UInt8(ascii: character) else { return false }
        at += 1
        return true
    }

    private mutating func broken(_ what: String, at offset: Int? = nil) -> PropertyListError {
        .unreadable(what, at: builder.place(offset ?? at))
    }
}
