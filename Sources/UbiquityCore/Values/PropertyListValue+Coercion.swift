// SPDX-License-Identifier: Apache-2.0

/// The typed getters' conversions of values of other types.
///
/// The rules are those of the class reference of `NSUbiquitousKeyValueStore` and, for strings, of
/// `NSString`'s `boolValue`, `longLongValue` and `doubleValue`. Nothing is written back.
extension PropertyListValue {
    /// Numbers are true unless zero. Strings are true if they begin, after spaces, a sign and
    /// zeros, with one of `YyTt1-9`. Every other type is false.
    package var asBool: Bool {
        switch self {
        case .boolean(let boolean): boolean
        case .integer(let integer): integer != 0
        case .unsigned: true
        case .real(let real): real != 0
        case .string(let string): Self.bool(of: string.string)
        case .date, .data, .array, .dictionary, .sealed: false
        }
    }

    /// `true` is 1, reals lose their fraction, and strings give their leading digits. Other types
    /// are 0. Numbers outside of `Int64` are clamped to it, and NaN is 0.
    package var asInt64: Int64 {
        switch self {
        case .boolean(let boolean): boolean ? 1 : 0
        case .integer(let integer): integer
        case .unsigned: .max
        case .real(let real): Self.clamped(real)
        case .string(let string): Self.integer(of: string.string)
        case .date, .data, .array, .dictionary, .sealed: 0
        }
    }

    /// `true` is 1, and strings give their leading number. Other types are 0.
    package var asDouble: Double {
        switch self {
        case .boolean(let boolean): boolean ? 1 : 0
        case .integer(let integer): Double(integer)
        case .unsigned(let unsigned): Double(unsigned)
        case .real(let real): real
        case .string(let string): Self.double(of: string.string)
        case .date, .data, .array, .dictionary, .sealed: 0
        }
    }

    private static func clamped(_ real: Double) -> Int64 {
        if real.isNaN { return 0 }
        return Int64(exactly: real.rounded(.towardZero)) ?? (real < 0 ? .min : .max)
    }

    private static func bool(of string: String) -> Bool {
        var rest = trimmed(string)
        if let sign = rest.first, isSign(sign) { rest = rest.dropFirst() }
        rest = rest.drop { $0 == UInt8(ascii: "0") }
        return rest.first.map { "YyTt123456789".utf8.contains($0) } ?? false
    }

    private static func integer(of string: String) -> Int64 {
        var rest = trimmed(string)
        let isNegative = rest.first == UInt8(ascii: "-")
        if let sign = rest.first, isSign(sign) { rest = rest.dropFirst() }
        var result: Int64 = 0
        for digit in rest.prefix(while: { $0.isDigit }) {
            let value = Int64(digit - UInt8(ascii: "0"))
            let (product, overflow1) = result.multipliedReportingOverflow(by: 10)
            let (sum, overflow2) = product.addingReportingOverflow(isNegative ? -value : value)
            if overflow1 || overflow2 { return isNegative ? .min : .max }
            result = sum
        }
        return result
    }

    /// The longest prefix of the form sign, digits, point, digits, exponent.
    private static func double(of string: String) -> Double {
        let text = trimmed(string)
        var end = text.startIndex
        var digits = 0
        func skipDigits() {
            while end < text.endIndex, text[end].isDigit {
                end += 1
                digits += 1
            }
        }
        if end < text.endIndex, isSign(text[end]) { end += 1 }
        skipDigits()
        if end < text.endIndex, text[end] == UInt8(ascii: ".") {
            end += 1
            skipDigits()
        }
        guard digits > 0 else { return 0 }
        let mantissaEnd = end
        if end < text.endIndex, text[end] | 0x20 == UInt8(ascii: "e") {
            end += 1
            if end < text.endIndex, isSign(text[end]) { end += 1 }
            digits = 0
            skipDigits()
            if digits == 0 { end = mantissaEnd }
        }
        return Double(String(decoding: text[..<end], as: UTF8.self)) ?? 0
    }

    private static func trimmed(_ string: String) -> ArraySlice<UInt8> {
        Array(string.utf8).drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
    }

    private static func isSign(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
    }
}
