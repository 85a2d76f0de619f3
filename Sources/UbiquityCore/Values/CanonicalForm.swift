// SPDX-License-Identifier: Apache-2.0

/// A value's one form in bytes: the protocol's message `Value` in the binary format of protobuf,
/// with the entries of a dictionary in the order of their keys. Equal values have equal bytes, and
/// no other bytes are read as that value. Of sealed values none is read: they contain this form.
package enum CanonicalForm {
    package static func encode(_ value: PropertyListValue) -> [UInt8] {
        var encoder = CanonicalEncoder()
        encoder.put(value)
        encoder.reverse(from: 0)
        return encoder.backwards
    }

    /// - Parameter elements: The number of values that there may be, in the containers and around
    ///   them: four bytes may become an object of a hundred. What was decoded is taken off.
    /// - Throws: ``CanonicalFormError``.
    package static func decode(
        _ bytes: [UInt8], within elements: inout Int
    ) throws(CanonicalFormError) -> PropertyListValue {
        var decoder = CanonicalDecoder(bytes, elements: elements)
        defer { elements = decoder.elements }
        return try decoder.value(until: bytes.count, depth: 1)
    }

    /// The tags of the fields.
    fileprivate enum Tag {
        static let string: UInt8 = 1 << 3 | 2
        static let boolean: UInt8 = 2 << 3
        static let integer: UInt8 = 3 << 3
        static let unsigned: UInt8 = 4 << 3
        static let real: UInt8 = 5 << 3 | 1
        static let date: UInt8 = 6 << 3 | 1
        static let data: UInt8 = 7 << 3 | 2
        static let array: UInt8 = 8 << 3 | 2
        static let dictionary: UInt8 = 9 << 3 | 2
        static let sealed: UInt8 = 10 << 3 | 2
        static let generation: UInt8 = 1 << 3
        static let box: UInt8 = 2 << 3 | 2
        /// Of an element in an array, and of an entry in a dictionary.
        static let element: UInt8 = 1 << 3 | 2
        static let key: UInt8 = 1 << 3 | 2
        static let value: UInt8 = 2 << 3 | 2
    }
}

package enum CanonicalFormError: Error, Hashable, Sendable {
    /// Not a value, or not its one form.
    case malformed
    case tooDeep
    case tooManyElements
}

/// Writes the last byte first: the length of what is inside stands before it.
private struct CanonicalEncoder {
    typealias Tag = CanonicalForm.Tag

    var backwards: [UInt8] = []

    mutating func put(_ value: PropertyListValue) {
        switch value {
        case .string(let string): delimited(Tag.string) { $0.put(string.string.utf8) }
        case .boolean(let boolean): number(Tag.boolean, boolean ? 1 : 0)
        case .integer(let integer):
            number(Tag.integer, UInt64(bitPattern: integer << 1 ^ integer >> 63))
        case .unsigned(let unsigned): number(Tag.unsigned, unsigned)
        case .real(let real): bits(Tag.real, real)
        case .date(let seconds): bits(Tag.date, seconds)
        case .data(let data): delimited(Tag.data) { $0.put(data) }
        case .array(let values): put(values)
        case .dictionary(let entries): put(entries)
        case .sealed(let box): put(box)
        }
    }

    private mutating func put(_ values: [PropertyListValue]) {
        delimited(Tag.array) { encoder in
            for value in values.reversed() { encoder.delimited(Tag.element) { $0.put(value) } }
        }
    }

    private mutating func put(_ entries: [ExactString: PropertyListValue]) {
        let entries = entries.inOrder { $0.key < $1.key }
        delimited(Tag.dictionary) { encoder in
            for (key, value) in entries.reversed() {
                encoder.delimited(Tag.element) { encoder in
                    encoder.delimited(Tag.value) { $0.put(value) }
                    // An empty text is left out where it is no choice.
                    if key.string.utf8.isEmpty { return }
                    encoder.delimited(Tag.key) { $0.put(key.string.utf8) }
                }
            }
        }
    }

    private mutating func put(_ box: SealedBox) {
        delimited(Tag.sealed) { encoder in
            if !box.bytes.isEmpty { encoder.delimited(Tag.box) { $0.put(box.bytes) } }
            if box.generation > 0 { encoder.number(Tag.generation, UInt64(box.generation)) }
        }
    }

    private mutating func put(_ bytes: some Collection<UInt8>) {
        let start = backwards.count
        backwards += bytes
        reverse(from: start)
    }

    /// As the library's, which calls a function for each byte in WebAssembly.
    mutating func reverse(from start: Int) {
        backwards.withUnsafeMutableBufferPointer { bytes in
            var (first, last) = (start, bytes.count - 1)
            while first < last {
                (bytes[first], bytes[last]) = (bytes[last], bytes[first])
                first &+= 1
                last &-= 1
            }
        }
    }

    private mutating func delimited(_ tag: UInt8, _ write: (inout Self) -> Void) {
        let end = backwards.count
        write(&self)
        number(tag, UInt64(backwards.count - end))
    }

    private mutating func number(_ tag: UInt8, _ number: UInt64) {
        let bytes = (64 - (number | 1).leadingZeroBitCount + 6) / 7
        for index in (0..<bytes).reversed() {
            let bits = UInt8(truncatingIfNeeded: number >> UInt64(7 * index)) & 0x7F
            backwards.append(index < bytes - 1 ? bits | 0x80 : bits)
        }
        backwards.append(tag)
    }

    private mutating func bits(_ tag: UInt8, _ real: Double) {
        let bits = PropertyListValue.canonical(real).bitPattern
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            backwards.append(UInt8(truncatingIfNeeded: bits >> shift))
        }
        backwards.append(tag)
    }
}

private struct CanonicalDecoder {
    typealias Tag = CanonicalForm.Tag

    private let bytes: [UInt8]
    private var offset = 0
    private(set) var elements: Int

    init(_ bytes: [UInt8], elements: Int) {
        self.bytes = bytes
        self.elements = elements
    }

    /// Reads the value that ends there.
    mutating func value(
        until end: Int, depth: Int
    ) throws(CanonicalFormError) -> PropertyListValue {
        guard depth <= PropertyListValue.depthMax else { throw .tooDeep }
        elements -= 1
        guard elements >= 0 else { throw .tooManyElements }
        let tag = try byte(before: end)
        let value: PropertyListValue
        switch tag {
        case Tag.array: value = .array(try values(until: inner(end), depth: depth + 1))
        case Tag.dictionary: value = .dictionary(try entries(until: inner(end), depth: depth + 1))
        default: value = try leaf(tag, until: end)
        }
        guard offset == end else { throw .malformed }
        return value
    }

    @inline(never)
    private mutating func leaf(
        _ tag: UInt8, until end: Int
    ) throws(CanonicalFormError) -> PropertyListValue {
        switch tag {
        case Tag.string: return .string(try text(until: inner(end)))
        case Tag.data:
            let end = try inner(end)
            defer { offset = end }
            return .data(Array(bytes[offset..<end]))
        case Tag.boolean:
            let number = try number(before: end)
            guard number <= 1 else { throw .malformed }
            return .boolean(number == 1)
        case Tag.integer:
            let number = try number(before: end)
            return .integer(Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1))
        case Tag.unsigned:
            let number = try number(before: end)
            guard number > UInt64(Int64.max) else { throw .malformed }
            return .unsigned(number)
        case Tag.real: return .real(try real(before: end))
        case Tag.date: return .date(try real(before: end))
        default: throw .malformed
        }
    }

    @inline(never)
    private mutating func values(
        until end: Int, depth: Int
    ) throws(CanonicalFormError) -> [PropertyListValue] {
        var values: [PropertyListValue] = []
        while offset < end {
            guard try byte(before: end) == Tag.element else { throw .malformed }
            values.append(try value(until: inner(end), depth: depth))
        }
        return values
    }

    @inline(never)
    private mutating func entries(
        until end: Int, depth: Int
    ) throws(CanonicalFormError) -> [ExactString: PropertyListValue] {
        var entries: [ExactString: PropertyListValue] = [:]
        var last: ExactString?
        while offset < end {
            guard try byte(before: end) == Tag.element else { throw .malformed }
            let end = try inner(end)
            let key = try key(before: end)
            if let last, !(last < key) { throw .malformed }
            last = key
            guard try byte(before: end) == Tag.value else { throw .malformed }
            entries[key] = try value(until: inner(end), depth: depth)
            guard offset == end else { throw .malformed }
        }
        return entries
    }

    /// Without a field, the key is empty.
    private mutating func key(before end: Int) throws(CanonicalFormError) -> ExactString {
        guard offset < end, bytes[offset] == Tag.key else { return "" }
        offset += 1
        let end = try inner(end)
        guard offset < end else { throw .malformed }
        return try text(until: end)
    }

    private mutating func text(until end: Int) throws(CanonicalFormError) -> ExactString {
        guard let text = String(validating: bytes[offset..<end], as: UTF8.self) else {
            throw .malformed
        }
        offset = end
        return ExactString(text)
    }

    private mutating func real(before end: Int) throws(CanonicalFormError) -> Double {
        guard end - offset >= 8 else { throw .malformed }
        let bits = bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        offset += 8
        let real = Double(bitPattern: bits)
        guard !real.isNaN || bits == Double.nan.bitPattern else { throw .malformed }
        return real
    }

    /// Reads a length.
    /// - Returns: Where what has that length ends.
    private mutating func inner(_ end: Int) throws(CanonicalFormError) -> Int {
        let length = try number(before: end)
        guard length <= UInt64(end - offset) else { throw .malformed }
        return offset + Int(length)
    }

    /// Reads a number in as few bytes as it needs.
    private mutating func number(before end: Int) throws(CanonicalFormError) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            let byte = try byte(before: end)
            let bits = UInt64(byte & 0x7F)
            guard shift < 63 || bits <= 1 else { throw .malformed }
            number |= bits << shift
            guard byte & 0x80 == 0 else { continue }
            guard byte > 0 || shift == 0 else { throw .malformed }
            return number
        }
        throw .malformed
    }

    private mutating func byte(before end: Int) throws(CanonicalFormError) -> UInt8 {
        guard offset < end else { throw .malformed }
        defer { offset += 1 }
        return bytes[offset]
    }
}

extension [UInt8] {
    mutating func append(bigEndian number: some FixedWidthInteger & UnsignedInteger) {
        var shift = number.bitWidth
        while shift > 0 {
            shift -= 8
            append(UInt8(truncatingIfNeeded: number >> shift))
        }
    }
}
