// SPDX-License-Identifier: Apache-2.0

/// Reads property lists in XML and in the binary format: from bytes to a value, or an error with its
/// place. All bytes from outside come in here.
package enum PropertyList {
    /// Far more than a store's values need in either format.
    package static let bytesMax = 64 << 20

    /// - Parameters:
    ///   - depthMax: The maximum nesting. A store's dictionary contains values that nest.
    ///   - unsupported: Called for each entry of the root dictionary that no store can hold,
    ///     and that is then left out. Nil makes such an entry an error.
    /// - Throws: ``PropertyListError``.
    /// - Complexity: O(*n*) in the number of bytes.
    package static func decode(
        _ bytes: [UInt8], depthMax: Int = PropertyListValue.depthMax,
        unsupported: ((ExactString, UnsupportedValue) -> Void)? = nil
    ) throws(PropertyListError) -> PropertyListValue {
        try checkSize(bytes)
        if BinaryPropertyList.isBinary(bytes) {
            return try BinaryPropertyList.decode(
                bytes, depthMax: depthMax, unsupported: unsupported)
        }
        let text = try utf8(bytes)
        guard SourceText.first(in: text) == UInt8(ascii: "<") else {
            throw .unreadable(
                SourceText.isOldStyle(text)
                    ? oldStyleRule : "it begins neither like XML nor like the binary format")
        }
        var reader = XMLPropertyListReader(text, depthMax: depthMax, unsupported: unsupported)
        return try reader.root()
    }

    /// Advice for the old text format, for which there is no reader: it does not tell numbers,
    /// Booleans and dates from text.
    package static let oldStyleRule =
        "it is in the old text format, as `defaults read` prints it, which has no types; use what "
        + "`defaults export DOMAIN -` prints"

    static func checkSize(_ bytes: [UInt8]) throws(PropertyListError) {
        guard bytes.count <= bytesMax else {
            throw .unreadable("it has more than \(bytesMax >> 20) MB")
        }
    }

    /// The same text in UTF-8. It is in that already, or in UTF-16 after a byte order mark.
    static func utf8(_ bytes: [UInt8]) throws(PropertyListError) -> [UInt8] {
        let isBig = bytes.starts(with: [0xFE, 0xFF])
        guard isBig || bytes.starts(with: [0xFF, 0xFE]) else {
            guard String(validating: bytes, as: UTF8.self) == nil else { return bytes }
            throw .unreadable("its bytes are not text in UTF-8", at: faultyPlace(in: bytes))
        }
        let units = stride(from: 2, to: bytes.count - 1, by: 2).map { index in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return isBig ? first << 8 | second : second << 8 | first
        }
        guard bytes.count.isMultiple(of: 2), let text = String(validating: units, as: UTF16.self)
        else { throw .unreadable("its bytes are not text in UTF-16") }
        return Array(text.utf8)
    }

    private static func faultyPlace(in bytes: [UInt8]) -> PropertyListPlace {
        var (decoder, iterator, offset) = (UTF8(), bytes.makeIterator(), 0)
        while case .scalarValue(let scalar) = decoder.decode(&iterator) {
            offset += UTF8.width(scalar)
        }
        var finder = PlaceFinder(bytes)
        return finder.place(offset)
    }
}

/// A guess at the format of a text in UTF-8.
enum SourceText {
    /// The first byte that is not blank.
    static func first(in text: [UInt8]) -> UInt8? {
        text[start(of: text)...].first { !isBlank($0) }
    }

    /// Whether it is JSON with containers, and not the old text format, which begins alike.
    static func isJSON(_ text: [UInt8]) -> Bool {
        first(in: text).map { "{[".utf8.contains($0) } == true && !isOldStyle(text)
    }

    /// Whether it begins like the old text format: with an array, or with a key and `=`.
    static func isOldStyle(_ text: [UInt8]) -> Bool {
        var rest = text[start(of: text)...].drop(while: isBlank)
        if rest.first == UInt8(ascii: "(") || rest.starts(with: "/".utf8) { return true }
        if rest.first == UInt8(ascii: "{") { rest = rest.dropFirst().drop(while: isBlank) }
        if rest.first == UInt8(ascii: "\"") {
            rest = afterQuote(rest)
        } else {
            rest = rest.drop { isWord($0) }
        }
        return rest.drop(while: isBlank).first == UInt8(ascii: "=")
    }

    private static func start(of text: [UInt8]) -> Int {
        text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    }

    private static func afterQuote(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var rest = text.dropFirst()
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\") { rest = rest.dropFirst() }
        }
        return rest
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }

    private static func isWord(_ byte: UInt8) -> Bool {
        !isBlank(byte) && !"\"=;,{}()<>".utf8.contains(byte)
    }
}
