// SPDX-License-Identifier: Apache-2.0

/// Reads the binary format of a property list, described at ``BinaryPropertyList``.
///
/// Objects refer to others by number, and several may refer to one. Values cannot share, so 200
/// bytes can expand to a million million parts. The expanded size is therefore counted and limited;
/// no honest list comes near the limit. A list that contains itself ends there or at the maximum depth.
struct BinaryPropertyListReader {
    private let bytes: [UInt8]
    private let offsetBytes: Int
    private let referenceBytes: Int
    private let count: Int
    private let rootNumber: Int
    private let table: Int
    /// The remaining size in bytes, with ``partBytes`` for each part.
    private var budget = budgetMax
    private let depthMax: Int
    private let unsupported: ((ExactString, UnsupportedValue) -> Void)?

    private static let partBytes = 64
    /// Far more than a store can hold.
    private static let budgetMax = 96 << 20

    init(
        _ bytes: [UInt8], depthMax: Int,
        unsupported: ((ExactString, UnsupportedValue) -> Void)?
    ) throws(PropertyListError) {
        guard bytes.starts(with: BinaryPropertyList.magic),
            bytes.count > BinaryPropertyList.trailerBytes
        else { throw Self.broken(at: 0) }
        self.bytes = bytes
        self.depthMax = depthMax
        self.unsupported = unsupported
        let trailer = bytes.count - BinaryPropertyList.trailerBytes
        offsetBytes = Int(bytes[trailer + 6])
        referenceBytes = Int(bytes[trailer + 7])
        count = try Self.number(bytes[(trailer + 8)..<(trailer + 16)])
        rootNumber = try Self.number(bytes[(trailer + 16)..<(trailer + 24)])
        table = try Self.number(bytes[(trailer + 24)..<(trailer + 32)])
        guard max(offsetBytes, referenceBytes) <= 8, table <= trailer else {
            throw Self.broken(at: trailer)
        }
    }

    mutating func root() throws(PropertyListError) -> PropertyListValue {
        try value(rootNumber, depth: 1)
    }

    private mutating func value(
        _ object: Int, depth: Int
    ) throws(PropertyListError) -> PropertyListValue {
        let start = try offset(of: object)
        guard depth <= depthMax else {
            throw Self.unsupported(PropertyListValue.depthRule, at: start)
        }
        let marker = try byte(start)
        switch marker >> 4 {
        case 0x0 where marker == 0x08 || marker == 0x09:
            try spend(0)
            return .boolean(marker == 0x09)
        case 0x1: return try integer(at: start)
        case 0x2: return .real(try real(at: start))
        case 0x3 where marker == 0x33: return .date(try real(at: start))
        case 0x4: return .data(Array(try content(at: start, unit: 1)))
        case 0x5, 0x6: return .string(try string(at: start))
        case 0x8: throw Self.unsupported(UnsupportedValue.archiveReference.reason, at: start)
        case 0xA: return .array(try elements(at: start, depth: depth))
        case 0xB, 0xC: throw Self.unsupported("a set is not a property-list value", at: start)
        case 0xD: return .dictionary(try entries(at: start, depth: depth))
        default: throw Self.unsupported(UnsupportedValue.otherType.reason, at: start)
        }
    }

    private mutating func elements(
        at start: Int, depth: Int
    ) throws(PropertyListError) -> [PropertyListValue] {
        let references = try references(at: start, times: 1)
        var values: [PropertyListValue] = []
        for reference in references {
            do throws(PropertyListError) {
                values.append(try value(reference, depth: depth + 1))
            } catch { throw error.within { $0.within(index: values.count) } }
        }
        return values
    }

    private mutating func entries(
        at start: Int, depth: Int
    ) throws(PropertyListError) -> [ExactString: PropertyListValue] {
        let references = try references(at: start, times: 2)
        let count = references.count / 2
        let isRoot = depth == 1 && unsupported != nil
        var entries: [ExactString: PropertyListValue] = [:]
        var leftOut: Set<ExactString> = []
        for index in 0..<count {
            let place = try offset(of: references[index])
            let key = ExactString(try string(at: place))
            do throws(PropertyListError) {
                let value = try value(references[count + index], depth: depth + 1)
                guard entries.updateValue(value, forKey: key) == nil, !leftOut.contains(key) else {
                    throw Self.unsupported(PropertyListValue.keyTwice, at: place)
                }
            } catch {
                guard isRoot, case .unsupported(let value) = error else {
                    throw error.within { $0.within(key: key.string) }
                }
                entries[key] = nil
                if leftOut.insert(key).inserted { unsupported?(key, value) }
            }
        }
        return entries
    }

    private mutating func references(
        at start: Int, times: Int
    ) throws(PropertyListError) -> [Int] {
        let (count, first) = try counted(at: start)
        // Each element is a part, and takes eight bytes in the list.
        guard count * times <= budget / Self.partBytes else { throw Self.tooLarge }
        // A number of eight bytes each while what they refer to is read, at every depth.
        try spend(count * times * 8)
        var references: [Int] = []
        for index in 0..<(count * times) {
            references.append(try number(first + index * referenceBytes, referenceBytes))
        }
        return references
    }

    /// Text of one byte for each character is ASCII, other text is in UTF-16.
    private mutating func string(at start: Int) throws(PropertyListError) -> String {
        let text: String?
        switch try byte(start) >> 4 {
        case 0x5:
            let bytes = try content(at: start, unit: 1)
            text = Self.isASCII(bytes) ? String(decoding: bytes, as: UTF8.self) : nil
        case 0x6:
            let bytes = Array(try content(at: start, unit: 2))
            let units = stride(from: 0, to: bytes.count, by: 2).map {
                UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
            }
            text = String(validating: units, as: UTF16.self)
        default: throw Self.unsupported("a key is not text", at: start)
        }
        guard let text else { throw Self.unsupported("its bytes are not text", at: start) }
        return text
    }

    private static func isASCII(_ bytes: ArraySlice<UInt8>) -> Bool {
        for byte in bytes where byte >= 0x80 { return false }
        return true
    }

    private mutating func integer(
        at start: Int
    ) throws(PropertyListError) -> PropertyListValue {
        try spend(0)
        let size = 1 << Int(try byte(start) & 0xF)
        guard size <= 16 else { throw Self.broken(at: start) }
        let bytes = try slice(start + 1, size)
        let low = bytes.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard size >= 8 else { return .integer(Int64(low)) }
        let high = bytes.dropLast(8)
        if high.isEmpty || high.allSatisfy({ $0 == 0xFF }) && low >> 63 == 1 {
            return .integer(Int64(bitPattern: low))
        }
        guard high.allSatisfy({ $0 == 0 }) else {
            throw Self.unsupported("an integer of more than 64 bits", at: start)
        }
        return PropertyListValue(unsigned: low)
    }

    private mutating func real(at start: Int) throws(PropertyListError) -> Double {
        try spend(0)
        switch try byte(start) & 0xF {
        case 2:
            let bits = try slice(start + 1, 4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            return PropertyListValue.canonical(Double(Float(bitPattern: bits)))
        case 3:
            let bits = try slice(start + 1, 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return PropertyListValue.canonical(Double(bitPattern: bits))
        default: throw Self.broken(at: start)
        }
    }

    private mutating func content(
        at start: Int, unit: Int
    ) throws(PropertyListError) -> ArraySlice<UInt8> {
        let (count, first) = try counted(at: start)
        try spend(count * unit)
        return try slice(first, count * unit)
    }

    /// The number of an object's elements and where they begin. The lower half of its first byte is
    /// the number, or 15 if an integer with the number follows.
    private func counted(at start: Int) throws(PropertyListError) -> (count: Int, first: Int) {
        let low = Int(try byte(start) & 0xF)
        guard low == 0xF else { return (low, start + 1) }
        let type = try byte(start + 1)
        guard type >> 4 == 1, type & 0xF <= 3 else { throw Self.broken(at: start) }
        let size = 1 << Int(type & 0xF)
        let count = try number(start + 2, size)
        // Each element takes at least a byte.
        guard count <= bytes.count else { throw Self.broken(at: start) }
        return (count, start + 2 + size)
    }

    private func offset(of object: Int) throws(PropertyListError) -> Int {
        guard object < count, object < bytes.count else { throw Self.broken(at: table) }
        return try number(table + object * offsetBytes, offsetBytes)
    }

    private func byte(_ offset: Int) throws(PropertyListError) -> UInt8 {
        guard bytes.indices.contains(offset) else { throw Self.broken(at: offset) }
        return bytes[offset]
    }

    private func slice(
        _ offset: Int, _ size: Int
    ) throws(PropertyListError) -> ArraySlice<UInt8> {
        guard offset >= 0, size >= 0, offset <= bytes.count - size else {
            throw Self.broken(at: offset)
        }
        return bytes[offset..<(offset + size)]
    }

    private func number(_ offset: Int, _ size: Int) throws(PropertyListError) -> Int {
        guard size > 0 else { throw Self.broken(at: offset) }
        return try Self.number(try slice(offset, size))
    }

    /// No offset in a file needs more than six bytes.
    private static func number(_ bytes: ArraySlice<UInt8>) throws(PropertyListError) -> Int {
        var number: UInt64 = 0
        for byte in bytes { number = number << 8 | UInt64(byte) }
        guard number < 1 << 48, let number = Int(exactly: number) else {
            throw broken(at: bytes.startIndex)
        }
        return number
    }

    private mutating func spend(_ payload: Int) throws(PropertyListError) {
        budget -= Self.partBytes + payload
        guard budget >= 0 else { throw Self.tooLarge }
    }

    private static let tooLarge = PropertyListError.unreadable(
        "repeated content makes it too large")

    private static func broken(at offset: Int) -> PropertyListError {
        .unreadable("its parts do not match", at: .byte(offset))
    }

    private static func unsupported(_ reason: String, at offset: Int) -> PropertyListError {
        .unsupported(UnsupportedValue(reason, place: .byte(offset)))
    }
}
