// SPDX-License-Identifier: Apache-2.0

/// A string that equals another only if their UTF-8 bytes are equal.
///
/// Swift's `String` considers "é" and "e" with a combining accent equal. The store must not, or one
/// of two keys that an app wrote would vanish. The order is also that of the bytes.
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
                a.count == b.count && Self.areEqual(UnsafeRawBufferPointer(a), .init(b))
            }
        }
    }

    package func hash(into hasher: inout Hasher) {
        withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }

    /// Compares as many bytes: a key of a few words as fast as `memcmp`, which not every platform has.
    private static func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
        func difference(_ offset: Int) -> UInt64 {
            a.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                ^ b.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        }
        var offset = 0
        while offset + 32 <= a.count {
            let first = difference(offset) | difference(offset + 8)
            let second = difference(offset + 16) | difference(offset + 24)
            guard first | second == 0 else { return false }
            offset += 32
        }
        while offset + 8 <= a.count {
            guard difference(offset) == 0 else { return false }
            offset += 8
        }
        while offset < a.count {
            guard a[offset] == b[offset] else { return false }
            offset += 1
        }
        return true
    }

    /// A fast hash of the bytes.
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

    private func withBytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        string.utf8.withContiguousStorageIfAvailable(body)
            ?? ContiguousArray(string.utf8).withUnsafeBufferPointer(body)
    }
}

/// A secret of a table's hashes. Without it, anyone could give a store thousands of keys with the
/// same hash.
struct HashSeed: Hashable, Sendable {
    private let offset: UInt64
    private let factor: UInt64

    /// Random for this process, from the hash seed of the standard library.
    static let ofProcess = HashSeed(UInt64(bitPattern: Int64(1.hashValue)), 2.hashValue)

    init(_ offset: UInt64, _ factor: Int) {
        self.offset = offset
        // Odd, so that multiplication is one-to-one, and large.
        self.factor = UInt64(bitPattern: Int64(factor)) | 1 << 63 | 1
    }

    /// Every bit of the input affects every bit of the result.
    @inline(__always)
    fileprivate func mix(_ number: UInt64) -> UInt64 {
        let product = (number ^ offset).multipliedFullWidth(by: factor)
        return product.high ^ product.low
    }
}

extension ExactString: Comparable {
    package static func < (a: ExactString, b: ExactString) -> Bool {
        a.withBytes { a in b.withBytes { b in a.lexicographicallyPrecedes(b) } }
    }
}

extension ExactString: ExpressibleByStringInterpolation, CustomStringConvertible {
    package init(stringLiteral value: String) { self.init(value) }
    package var description: String { string }
}

/// A property that is a string for whoever uses it, and compared as an ``ExactString``: the order of
/// accents is Unicode's business, and its tables would be a tenth of the engine in WebAssembly.
@propertyWrapper
package struct Exact<Value: ExactlyComparable>: Hashable, Sendable {
    package var wrappedValue: Value

    package init(wrappedValue: Value) { self.wrappedValue = wrappedValue }

    package static func == (a: Self, b: Self) -> Bool {
        a.wrappedValue.exactString == b.wrappedValue.exactString
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(wrappedValue.exactString) }
}

/// A string, or none.
package protocol ExactlyComparable: Sendable {
    var exactString: ExactString? { get }
}

extension String: ExactlyComparable {
    package var exactString: ExactString? { ExactString(self) }
}

extension String?: ExactlyComparable {
    package var exactString: ExactString? { map { ExactString($0) } }
}

extension String {
    /// The same as `utf16.count`, without the index that the standard library makes of long text.
    var utf16Count: Int {
        utf8.reduce(0) { count, byte in
            byte & 0xC0 == 0x80 ? count : byte < 0xF0 ? count + 1 : count + 2
        }
    }
}
