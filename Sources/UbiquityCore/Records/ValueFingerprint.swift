// SPDX-License-Identifier: Apache-2.0

/// A 128-bit hash of a value, the same in every process and on every machine. Different values
/// practically never have the same one.
///
/// For comparisons with earlier values. It does not protect against values made to collide, which
/// would only hide a change from their author. Cost: a few nanoseconds for each 8 bytes of the
/// value.
package struct ValueFingerprint: Hashable, Sendable {
    package static let byteCount = 16

    private var first: UInt64 = 0x243F_6A88_85A3_08D3
    private var second: UInt64 = 0x1319_8A2E_0370_7344

    package init(_ value: PropertyListValue) { add(value) }

    /// The digest of a transaction: equal for equal keys and contents, in any order, and never 0.
    package static func digest(of writes: some Collection<(key: Key, content: Content)>) -> UInt64 {
        var fingerprint = Self()
        fingerprint.add(10, UInt64(writes.count))
        // An app waits for a single write, and sorting would allocate memory.
        if writes.count == 1 {
            for write in writes { fingerprint.add(write.key, write.content) }
        } else {
            for write in writes.inOrder(by: { $0.key < $1.key }) {
                fingerprint.add(write.key, write.content)
            }
        }
        return max(1, fingerprint.first ^ fingerprint.second.byteSwapped)
    }

    private mutating func add(_ key: Key, _ content: Content) {
        if key.isPart {
            add(7, bytes: key.bytes)
        } else {
            add(7, bytes: key.string.utf8)
        }
        if let value = content.value {
            add(value)
        } else {
            add(0)
        }
    }

    private init() {}

    /// - Returns: Nil unless there are ``byteCount`` bytes.
    package init?(bytes: [UInt8]) {
        guard bytes.count == Self.byteCount else { return nil }
        first = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        second = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    package var bytes: [UInt8] {
        [first, second].flatMap { half in
            (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64($0))) }
        }
    }

    // Each value begins with a number for its type, each container and string with its length, so
    // that no two values give the same sequence.
    private mutating func add(_ value: PropertyListValue) {
        switch value {
        case .string(let string): add(1, bytes: string.string.utf8)
        case .boolean(let boolean): add(2, boolean ? 1 : 0)
        case .integer(let integer): add(3, UInt64(bitPattern: integer))
        case .unsigned(let unsigned): add(4, unsigned)
        case .real(let real): add(5, real.bitPattern)
        case .date(let date): add(6, date.bitPattern)
        case .data(let bytes): add(7, bytes: bytes)
        case .array(let values):
            add(8, UInt64(values.count))
            for value in values { add(value) }
        case .dictionary(let entries):
            add(9, UInt64(entries.count))
            for (key, value) in entries.inOrder(by: { $0.key < $1.key }) {
                add(1, bytes: key.string.utf8)
                add(value)
            }
        case .sealed(let box):
            add(11, UInt64(box.generation))
            add(7, bytes: box.bytes)
        }
    }

    private mutating func add(_ type: UInt64, bytes: some Collection<UInt8>) {
        add(type, UInt64(bytes.count))
        let isAdded: Void? = bytes.withContiguousStorageIfAvailable { bytes in
            add(words: UnsafeRawBufferPointer(bytes))
        }
        if isAdded == nil { Array(bytes).withUnsafeBytes { add(words: $0) } }
    }

    /// Eight bytes at a time, the first in the highest place.
    private mutating func add(words bytes: UnsafeRawBufferPointer) {
        var offset = 0
        while offset + 8 <= bytes.count {
            add(UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        guard offset < bytes.count else { return }
        add(bytes[offset...].reduce(0) { $0 << 8 | UInt64($1) })
    }

    private mutating func add(_ type: UInt64, _ word: UInt64) {
        add(type)
        add(word)
    }

    private mutating func add(_ word: UInt64) {
        first = Self.mix(first ^ word, 0xA076_1D64_78BD_642F)
        second = Self.mix(second &+ word, 0xE703_7ED1_A0B4_28DB)
    }

    /// The constants of wyhash, in which half of the bits are ones.
    private static func mix(_ number: UInt64, _ secret: UInt64) -> UInt64 {
        let product = (number ^ secret).multipliedFullWidth(by: 0x8EBC_6AF0_9C88_C6E3)
        return product.high ^ product.low &+ number.byteSwapped
    }
}
