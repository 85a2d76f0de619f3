// SPDX-License-Identifier: Apache-2.0

/// Encodes bytes as text, according to RFC 4648.
enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func text(of bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << ((3 - group.count) * 8)
            let letters = [18, 12, 6, 0].map { alphabet[bits >> $0 & 63] }
            text += letters.prefix(group.count + 1)
            text += repeatElement(UInt8(ascii: "="), count: 3 - group.count)
        }
        return String(decoding: text, as: UTF8.self)
    }
}
