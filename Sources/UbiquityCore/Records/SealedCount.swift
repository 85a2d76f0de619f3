// SPDX-License-Identifier: Apache-2.0

/// A run's count as a sealed store has it: in clear, because the server adds counts up, with a tag
/// that says that the key is a counter.
///
/// Its bytes are 2, the number of times, the kind of the total, the total's bits, and the tag.
struct SealedCount {
    static let version: UInt8 = 2
    static let tagBytes = 8
    /// Without the tag.
    static let bytesCount = 18

    let value: PropertyListValue

    /// Fails for a value that is not a count.
    init?(_ value: PropertyListValue) {
        guard Count(value) != nil else { return nil }
        self.value = value
    }

    /// - Parameter bytes: With the tag.
    init?(bytes: [UInt8]) {
        guard bytes.count == Self.bytesCount + Self.tagBytes, bytes[0] == Self.version else {
            return nil
        }
        let (times, bits) = (Self.number(bytes[1..<9]), Self.number(bytes[10..<18]))
        let total: PropertyListValue
        switch bytes[9] {
        case 0: total = .integer(Int64(bitPattern: bits))
        case 1: total = .real(PropertyListValue.canonical(Double(bitPattern: bits)))
        case 2: total = PropertyListValue(unsigned: bits)
        default: return nil
        }
        value = .array([.integer(Int64(bitPattern: times)), total])
        // One form of each count.
        guard self.bytes == bytes.dropLast(Self.tagBytes) else { return nil }
    }

    /// Without the tag.
    var bytes: [UInt8] {
        guard case .array(let parts) = value, case .integer(let times)? = parts.first else {
            return []
        }
        let (kind, bits): (UInt8, UInt64) =
            switch parts.last {
            case .integer(let total)?: (0, UInt64(bitPattern: total))
            case .real(let total)?: (1, total.bitPattern)
            case .unsigned(let total)?: (2, total)
            default: (0, 0)
            }
        var bytes = [Self.version]
        bytes.append(bigEndian: UInt64(bitPattern: times))
        bytes.append(kind)
        bytes.append(bigEndian: bits)
        return bytes
    }

    /// What says that a key is a counter, the same for all counts of a key and a generation.
    struct Seal: Hashable, Comparable, Sendable {
        let generation: UInt32
        private let tag: [UInt8]

        /// - Parameter box: Of a count.
        init(_ box: SealedBox) {
            (generation, tag) = (box.generation, Array(box.bytes.suffix(tagBytes)))
        }

        func box(_ count: SealedCount) -> SealedBox {
            SealedBox(generation: generation, bytes: count.bytes + tag)
        }

        static func < (a: Self, b: Self) -> Bool {
            guard a.generation == b.generation else { return a.generation < b.generation }
            return a.tag.lexicographicallyPrecedes(b.tag)
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
