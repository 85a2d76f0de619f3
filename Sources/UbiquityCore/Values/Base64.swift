// SPDX-License-Identifier: Apache-2.0

/// Bytes as text in base64, with padding.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let padding = UInt8(ascii: "=")

    /// The bits of each character; 64 for any other byte.
    private static let bits: [UInt8] = {
        var bits = [UInt8](repeating: 64, count: 256)
        for (index, character) in alphabet.enumerated() { bits[Int(character)] = UInt8(index) }
        return bits
    }()

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let group = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            for place in 0..<4 {
                text.append(
                    place <= part.count ? alphabet[group >> (18 - 6 * place) & 63] : padding)
            }
        }
        return text
    }

    /// Nil for text that ``encode(_:)`` does not give: characters of another kind, missing padding,
    /// and bits beyond the last byte, which all say that something was lost.
    static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 4) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var (group, count, padded) = (0, 0, 0)
        for character in text {
            if character == padding {
                padded += 1
            } else {
                guard padded == 0, bits[Int(character)] < 64 else { return nil }
            }
            group = group << 6 | Int(bits[Int(character)] & 63)
            count += 1
            guard count.isMultiple(of: 4) else { continue }
            guard padded <= 2 else { return nil }
            for place in 0..<(3 - padded) {
                bytes.append(UInt8(truncatingIfNeeded: group >> (16 - 8 * place)))
            }
            guard group & ((1 << (8 * padded)) - 1) == 0 else { return nil }
            group = 0
        }
        return bytes
    }
}
