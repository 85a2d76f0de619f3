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

extension ExactString: Comparable {
    package static func < (a: ExactString, b: ExactString) -> Bool {
        a.string.utf8.lexicographicallyPrecedes(b.string.utf8)
    }
}

extension ExactString: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral value: String) { self.init(value) }
    package var description: String { string }
}
