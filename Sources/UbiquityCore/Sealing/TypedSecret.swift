// SPDX-License-Identifier: Apache-2.0

/// Secret bytes that people copy from a screen or from paper, as text in groups. Two are compared in
/// a time that does not depend on where they differ, and none is printed.
///
/// The text is Crockford's base32, and four more characters that find each mistake of one character,
/// or of two that were exchanged, and all but a millionth of all others.
package protocol TypedSecret: Hashable, Sendable, CustomStringConvertible {
    /// As many as ``bytesCount``.
    var bytes: [UInt8] { get }
    static var bytesCount: Int { get }
    /// - Parameter bytes: Random ones. Nil unless there are as many as ``bytesCount``.
    init?(_ bytes: [UInt8])
}

extension TypedSecret {
    package static func == (a: Self, b: Self) -> Bool { a.bytes.isSame(as: b.bytes[...]) }

    package var description: String { "a secret" }

    /// What a person types: groups of four characters.
    package var text: String {
        let digits = Base32.digits(of: bytes)
        var text: [UInt8] = []
        for (index, digit) in (digits + Base32.check(digits)).enumerated() {
            if index > 0, index.isMultiple(of: 4) { text.append(UInt8(ascii: "-")) }
            text.append(Base32.alphabet[Int(digit)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Reads what a person typed: capitals or not, with dashes, blanks and line ends of any kind anywhere,
    /// and with O for 0 and I or L for 1.
    /// - Throws: ``TypedSecretFault``.
    package init(typed text: some StringProtocol) throws(TypedSecretFault) {
        guard let digits = Base32.digits(in: text) else { throw .mistyped }
        guard digits.count == Self.textDigits else { throw .length(digits.count) }
        let count = Self.textDigits - Base32.checkDigits
        guard Base32.check(Array(digits[..<count])) == Array(digits[count...]),
            let bytes = Base32.bytes(of: digits[..<count]), let secret = Self(bytes)
        else { throw .mistyped }
        self = secret
    }

    /// Reads what a person typed, as ``init(typed:)``. Nil for anything else.
    package init?(text: some StringProtocol) {
        guard let secret = try? Self(typed: text) else { return nil }
        self = secret
    }

    /// The letters and digits of ``text``.
    static var textDigits: Int { (bytesCount * 8 + 4) / 5 + Base32.checkDigits }
}

/// What is wrong with a text that a person typed in place of a secret.
package enum TypedSecretFault: Error, Hashable, Sendable {
    /// It has so many letters and digits, which are too few or too many.
    case length(Int)
    /// Its last four letters and digits do not fit the others, or there is something else among them.
    case mistyped
}

/// Crockford's base32, whose characters are not taken for one another.
private enum Base32 {
    static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
    static let textBytesMax = 512
    static let checkDigits = 4

    /// Each has five bits; after the last byte there are zeros.
    static func digits(of bytes: [UInt8]) -> [UInt8] {
        var digits: [UInt8] = []
        var (bits, count) = (UInt32(0), 0)
        for byte in bytes {
            bits = bits << 8 | UInt32(byte)
            count += 8
            while count >= 5 {
                count -= 5
                digits.append(UInt8(bits >> UInt32(count) & 31))
            }
            bits &= 1 << UInt32(count) - 1
        }
        if count > 0 { digits.append(UInt8(bits << UInt32(5 - count) & 31)) }
        return digits
    }

    /// Nil if what follows the last whole byte is not zero.
    static func bytes(of digits: ArraySlice<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var (bits, count) = (UInt32(0), 0)
        for digit in digits {
            bits = bits << 5 | UInt32(digit)
            count += 5
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(bits >> UInt32(count) & 255))
            bits &= 1 << UInt32(count) - 1
        }
        return bits == 0 ? bytes : nil
    }

    /// Nil if there is anything else than the alphabet, what is taken for it, dashes and blanks, and for a
    /// text that is longer than any secret.
    static func digits(in text: some StringProtocol) -> [UInt8]? {
        guard text.utf8.count <= textBytesMax else { return nil }
        var digits: [UInt8] = []
        for scalar in text.unicodeScalars where !isIgnored(scalar.value) {
            guard let character = UInt8(exactly: scalar.value) else { return nil }
            let capital = (0x61...0x7A) ~= character ? character - 0x20 : character
            let meant: UInt8
            switch capital {
            case UInt8(ascii: "O"): meant = UInt8(ascii: "0")
            case UInt8(ascii: "I"), UInt8(ascii: "L"): meant = UInt8(ascii: "1")
            default: meant = capital
            }
            guard let digit = alphabet.firstIndex(of: meant) else { return nil }
            digits.append(UInt8(digit))
        }
        return digits
    }

    /// Whether it is what word processors, screens and papers put between characters: blanks and line
    /// ends, also those without a width, and hyphens, dashes and the minus sign.
    private static func isIgnored(_ scalar: UInt32) -> Bool {
        switch scalar {
        case 0x09...0x0D, 0x20, 0x85, 0xA0, 0x2000...0x200D, 0x2028, 0x2029, 0x202F, 0x205F, 0x2060,
            0x3000, 0xFEFF:
            true
        case 0x2D, 0xAD, 0x2010...0x2015, 0x2212, 0xFE58, 0xFE63, 0xFF0D: true
        default: false
        }
    }

    /// A polynomial of the digits modulo the greatest prime of 20 bits: each digit has a factor of its
    /// own, and so has each pair of digits.
    static func check(_ digits: [UInt8]) -> [UInt8] {
        let sum = digits.reduce(UInt64(0)) { ($0 * 37 + UInt64($1)) % 1_048_573 }
        return (0..<checkDigits).map { UInt8(sum >> UInt64(5 * (checkDigits - 1 - $0)) & 31) }
    }
}
