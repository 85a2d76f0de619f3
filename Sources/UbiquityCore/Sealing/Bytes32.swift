// SPDX-License-Identifier: Apache-2.0

/// 256 bits: a key, or a hash. Two are compared in a time that does not depend on where they differ,
/// and none is printed.
package struct Bytes32: Hashable, Sendable, CustomStringConvertible {
    package let bytes: [UInt8]

    package static let count = 32

    /// - Returns: Nil unless there are 32 bytes.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == Self.count else { return nil }
        self.bytes = Array(bytes)
    }

    /// - Parameter bytes: 32 bytes.
    init(unchecked bytes: [UInt8]) { self.bytes = bytes }

    package static func == (a: Self, b: Self) -> Bool { a.bytes.isSame(as: b.bytes[...]) }

    package var description: String { "32 bytes" }
}

extension [UInt8] {
    /// Whether these are the same bytes, in a time that depends on their number alone.
    func isSame(as other: ArraySlice<UInt8>) -> Bool {
        guard count == other.count else { return false }
        var difference: UInt8 = 0
        for (mine, theirs) in zip(self, other) { difference |= mine ^ theirs }
        return difference == 0
    }
}

#if !hasFeature(Embedded)
// What a debugger, `dump` or a failed test prints.
extension Bytes32: CustomReflectable {
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension HandoverSecret: CustomReflectable {
    package var customMirror: Mirror { Mirror(self, children: []) }
}

extension RecoveryKey: CustomReflectable {
    package var customMirror: Mirror { Mirror(self, children: []) }
}
#endif
