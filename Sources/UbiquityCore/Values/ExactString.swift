// SPDX-License-Identifier: Apache-2.0

/// A string that equals another only if their UTF-8 bytes are equal.
///
/// Swift's `String` calls "é" and "e" with a combining accent equal; the store must not, or one
/// of two keys that an app wrote would vanish. The order is that of the bytes, too.
package struct ExactString: Sendable {
    package let string: String

    package init(_ string: String) {
        var string = string
        string.makeContiguousUTF8()
        self.string = string
    }
}

extension ExactString: Hashable {
    package static func == (a: ExactString, b: ExactString) -> Bool {
        a.withBytes { a in
            b.withBytes { b in
                a.count == b.count && Self.areEqual(a, b)
            }
        }
    }

    package func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// A hash of the bytes that takes a few multiplications.
    func quickHash(_ seed: HashSeed) -> UInt32 {
        withBytes { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            var hash = UInt64(bytes.count)
            var offset = 0
            while offset + 8 <= bytes.count {
                hash = seed.mix(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                offset += 8
            }
            var rest: UInt64 = 0
            while offset < bytes.count {
                rest = rest << 8 | UInt64(bytes[offset])
                offset += 1
            }
            return UInt32(truncatingIfNeeded: seed.mix(hash ^ rest))
        }
    }

    /// Eight bytes at a time: every look-up of a key comes here.
    private static func areEqual(
        _ a: UnsafeBufferPointer<UInt8>, _ b: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        let (a, b) = (UnsafeRawBufferPointer(a), UnsafeRawBufferPointer(b))
        var offset = 0
        while offset + 8 <= a.count {
            guard
                a.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                    == b.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            else { return false }
            offset += 8
        }
        while offset < a.count {
            guard a[offset] == b[offset] else { return false }
            offset += 1
        }
        return true
    }

    private func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        string.utf8.withContiguousStorageIfAvailable(body)
            ?? ContiguousArray(string.utf8).withUnsafeBufferPointer(body)
    }
}

/// What nobody outside knows of the hashes of a table, who could otherwise give a store thousands of keys
/// that have one.
struct HashSeed: Hashable, Sendable {
    private let offset: UInt64
    private let factor: UInt64

    /// Drawn for this process by the standard library, for its own tables.
    static let ofProcess = HashSeed(
        UInt64(bitPattern: Int64("offset".hashValue)), "factor".hashValue)

    init(_ offset: UInt64, _ factor: Int) {
        self.offset = offset
        // Odd, so that no two numbers have one product, and great.
        self.factor = UInt64(bitPattern: Int64(factor)) | 1 << 63 | 1
    }

    /// Each bit of the number reaches each of the result.
    @inline(__always)
    fileprivate func mix(_ number: UInt64) -> UInt64 {
        let product = (number ^ offset).multipliedFullWidth(by: factor)
        return product.high ^ product.low
    }
}

extension ExactString: Comparable {
    package static func < (a: ExactString, b: ExactString) -> Bool {
        a.string.utf8.lexicographicallyPrecedes(b.string.utf8)
    }
}

extension ExactString: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral value: String) { self.init(value) }
    package var description: String { string }
}
