// SPDX-License-Identifier: Apache-2.0

/// The text of a box: a value's canonical form after its length, and zeros that hide how long it is.
enum SealedText {
    private static let lengthBytes = 4
    static let bytesMin = 32

    static func encode(_ value: PropertyListValue) -> [UInt8] {
        let canonical = CanonicalForm.encode(value)
        let count = padded(lengthBytes + canonical.count)
        var text: [UInt8] = []
        text.reserveCapacity(count)
        text.append(bigEndian: UInt32(truncatingIfNeeded: canonical.count))
        text += canonical
        text += repeatElement(0, count: count - text.count)
        return text
    }

    /// - Parameter elements: As for ``CanonicalForm/decode(_:within:)``.
    /// - Returns: Nil unless it is what ``encode(_:)`` makes of a value.
    static func decode(_ text: [UInt8], within elements: inout Int) -> PropertyListValue? {
        guard text.count >= bytesMin else { return nil }
        let count = text[..<lengthBytes].reduce(0) { $0 << 8 | UInt64($1) }
        guard count <= UInt64(text.count - lengthBytes) else { return nil }
        let end = lengthBytes + Int(count)
        guard padded(end) == text.count, text[end...].allSatisfy({ $0 == 0 }) else { return nil }
        return try? CanonicalForm.decode(Array(text[lengthBytes..<end]), within: &elements)
    }

    /// The size of a text that needs this many bytes: at least 32, and rounded up by less than an
    /// eighth (Padmé), so that only a few different sizes of each magnitude are left.
    static func padded(_ count: Int) -> Int {
        let count = max(count, bytesMin)
        let exponent = magnitude(count)
        let rounded = 1 << (exponent - magnitude(exponent) - 1)
        return (count + rounded - 1) & ~(rounded - 1)
    }

    /// The binary logarithm, rounded down.
    private static func magnitude(_ number: Int) -> Int {
        Int.bitWidth - 1 - number.leadingZeroBitCount
    }
}
