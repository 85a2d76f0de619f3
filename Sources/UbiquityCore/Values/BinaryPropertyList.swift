// SPDX-License-Identifier: Apache-2.0

/// The binary format of a property list ("bplist00"). Unlike Foundation's implementation, it is
/// exact: it keeps two keys of a dictionary that differ only in Unicode normalisation, and
/// containers as deep as in a store's value. Apart from these, Foundation and `plutil` can read
/// what it writes. It also bounds what it reads: see ``BinaryPropertyListReader``.
///
/// The file consists of objects, whose first byte has the type in its upper half and a size in its
/// lower half; then the offset of each object; then 32 bytes: the size of an offset at 6, the size
/// of a reference at 7, the number of objects at 8, the root at 16, and the place of the offsets at
/// 24. Numbers are big-endian.
package enum BinaryPropertyList {
    static let magic = Array("bplist00".utf8)
    static let trailerBytes = 32

    package static func isBinary(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.starts(with: Array("bplist".utf8))
    }

    /// - Complexity: O(*n*) in the size of the value; the stack grows with its depth.
    package static func encode(_ value: PropertyListValue) -> [UInt8] {
        var encoder = Encoder(count: objects(in: value))
        _ = encoder.add(value)
        return encoder.finish()
    }

    /// - Parameters:
    ///   - depthMax: The maximum nesting. A store's dictionary contains values that nest.
    ///   - unsupported: Called for each entry of the root dictionary that no store can hold,
    ///     and that is then left out. Nil makes such an entry an error.
    /// - Throws: ``PropertyListError``.
    package static func decode(
        _ bytes: [UInt8], depthMax: Int = PropertyListValue.depthMax + 1,
        unsupported: ((ExactString, UnsupportedValue) -> Void)? = nil
    ) throws(PropertyListError) -> PropertyListValue {
        var reader = try BinaryPropertyListReader(
            bytes, depthMax: depthMax, unsupported: unsupported)
        return try reader.root()
    }

    private static func objects(in value: PropertyListValue) -> Int {
        switch value {
        case .array(let values): values.reduce(1) { $0 + objects(in: $1) }
        case .dictionary(let entries): entries.values.reduce(1) { $0 + 1 + objects(in: $1) }
        case .string, .boolean, .integer, .unsigned, .real, .date, .data, .sealed: 1
        }
    }

    /// The smallest of 1, 2, 4 and 8 bytes that can hold the number. 64 bits, also where `Int` has 32.
    fileprivate static func bytesNeeded(for number: Int64) -> Int {
        if number < 1 << 8 { return 1 }
        return number < 1 << 16 ? 2 : number < 1 << 32 ? 4 : 8
    }
}

extension BinaryPropertyList {
    private struct Encoder {
        private var bytes = BinaryPropertyList.magic
        /// The offset of each object.
        private var offsets: [Int] = []
        private let referenceBytes: Int

        init(count: Int) {
            referenceBytes = BinaryPropertyList.bytesNeeded(for: Int64(count))
            offsets.reserveCapacity(count)
        }

        /// - Returns: The object's number. The first one is the root.
        mutating func add(_ value: PropertyListValue) -> Int {
            let number = offsets.count
            offsets.append(0)
            let references = references(of: value)
            offsets[number] = bytes.count
            write(value)
            for reference in references { write(Int64(reference), referenceBytes) }
            return number
        }

        /// Writes the objects inside this one first.
        private mutating func references(of value: PropertyListValue) -> [Int] {
            switch value {
            case .array(let values): return values.map { add($0) }
            case .dictionary(let entries):
                let sorted = entries.inOrder { $0.key < $1.key }
                let keys = sorted.map { add(.string($0.key)) }
                return keys + sorted.map { add($0.value) }
            case .string, .boolean, .integer, .unsigned, .real, .date, .data, .sealed: return []
            }
        }

        private mutating func write(_ value: PropertyListValue) {
            switch value {
            case .boolean(let boolean): bytes.append(boolean ? 0x09 : 0x08)
            case .integer(let integer): write(integer)
            case .unsigned(let unsigned):
                bytes.append(0x14)
                write(0, 8)
                write(unsigned)
            case .real(let real): write(real, marker: 0x23)
            case .date(let seconds): write(seconds, marker: 0x33)
            case .data(let data):
                write(marker: 0x40, count: data.count)
                bytes += data
            // No property list has such a value: its bytes are all that can be shown of it.
            case .sealed(let box): write(.data(box.bytes))
            case .string(let string): write(string.string)
            case .array(let values): write(marker: 0xA0, count: values.count)
            case .dictionary(let entries): write(marker: 0xD0, count: entries.count)
            }
        }

        /// Numbers of one, two or four bytes are unsigned.
        private mutating func write(_ integer: Int64) {
            let size = integer < 0 ? 8 : BinaryPropertyList.bytesNeeded(for: integer)
            bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
            write(integer, size)
        }

        private mutating func write(_ real: Double, marker: UInt8) {
            bytes.append(marker)
            write(real.bitPattern)
        }

        private mutating func write(_ string: String) {
            var string = string
            let isASCII = string.withUTF8 { text in
                for byte in text where byte >= 0x80 { return false }
                write(marker: 0x50, count: text.count)
                bytes.append(contentsOf: text)
                return true
            }
            guard !isASCII else { return }
            write(marker: 0x60, count: string.utf16Count)
            for unit in string.utf16 { write(Int64(unit), 2) }
        }

        private mutating func write(marker: UInt8, count: Int) {
            bytes.append(marker | UInt8(min(count, 0xF)))
            if count >= 0xF { write(Int64(count)) }
        }

        private mutating func write(_ number: UInt64) {
            write(Int64(bitPattern: number), 8)
        }

        private mutating func write(_ number: Int64, _ size: Int) {
            var shift = 8 * size
            while shift > 0 {
                shift -= 8
                bytes.append(UInt8(truncatingIfNeeded: number >> Int64(shift)))
            }
        }

        mutating func finish() -> [UInt8] {
            let table = bytes.count
            let offsetBytes = BinaryPropertyList.bytesNeeded(for: Int64(table))
            for offset in offsets { write(Int64(offset), offsetBytes) }
            bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetBytes), UInt8(referenceBytes)]
            write(UInt64(offsets.count))
            write(UInt64(0))
            write(UInt64(table))
            return bytes
        }
    }
}
