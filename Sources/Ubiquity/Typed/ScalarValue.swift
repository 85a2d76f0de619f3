// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// A type that is a single leaf of a property list and needs no encoder.
protocol ScalarValue: Codable {
    /// The form in the store.
    var stored: PropertyListValue { get }

    /// Converts a value of the same type; numbers of any type if they are exact. Nil otherwise.
    ///
    /// Values inside of containers are read this way. Anything more lenient would not do, because a
    /// type may try several forms, and a string read as an integer would never be a string.
    static func exact(_ value: PropertyListValue) -> Self?

    /// Converts as a getter of the class would. Nil if the value cannot be of this type, such as a
    /// number that a text is not.
    static func coerce(_ value: PropertyListValue) -> Self?
}

extension ScalarValue {
    static func coerce(_ value: PropertyListValue) -> Self? { exact(value) }
}

extension ExactString {
    /// The text without the white space around it.
    fileprivate var trimmed: String { string.trimmingCharacters(in: .whitespaces) }

    /// The same, if it has only what decimal numbers have: Swift also reads "nan" and "0x1p3".
    fileprivate var numeral: String? {
        let text = trimmed
        return text.utf8.allSatisfy("0123456789+-.eE".utf8.contains) ? text : nil
    }

    /// The number that the whole text is.
    fileprivate var number: Double? { numeral.flatMap(Double.init) }
}

extension String: ScalarValue {
    var stored: PropertyListValue { .string(self) }

    static func exact(_ value: PropertyListValue) -> String? {
        if case .string(let string) = value { string.string } else { nil }
    }

    static func coerce(_ value: PropertyListValue) -> String? { value.asString }
}

extension Bool: ScalarValue {
    var stored: PropertyListValue { .boolean(self) }

    static func exact(_ value: PropertyListValue) -> Bool? {
        if case .boolean(let boolean) = value { boolean } else { nil }
    }

    static func coerce(_ value: PropertyListValue) -> Bool? {
        switch value {
        case .string(let string):
            switch string.trimmed.lowercased() {
            case "true", "yes", "t", "y": true
            case "false", "no", "f", "n": false
            default: string.number.map { $0 != 0 }
            }
        case .boolean, .integer, .unsigned, .real: value.asBool
        case .date, .data, .array, .dictionary, .sealed: nil
        }
    }
}

// MARK: - Integers

/// An integer of at most 64 bits.
protocol ScalarInteger: ScalarValue, FixedWidthInteger {}

extension Int: ScalarInteger {}
extension Int8: ScalarInteger {}
extension Int16: ScalarInteger {}
extension Int32: ScalarInteger {}
extension Int64: ScalarInteger {}
extension UInt: ScalarInteger {}
extension UInt8: ScalarInteger {}
extension UInt16: ScalarInteger {}
extension UInt32: ScalarInteger {}
extension UInt64: ScalarInteger {}

extension ScalarInteger {
    var stored: PropertyListValue {
        Int64(exactly: self).map(PropertyListValue.integer) ?? .unsigned(UInt64(self))
    }

    static func exact(_ value: PropertyListValue) -> Self? {
        switch value {
        case .integer(let integer): Self(exactly: integer)
        case .unsigned(let unsigned): Self(exactly: unsigned)
        case .real(let real): Self(exactly: real)
        case .string, .boolean, .date, .data, .array, .dictionary, .sealed: nil
        }
    }

    /// As `longLong(forKey:)`, but nil instead of the nearest end if the value does not fit.
    static func coerce(_ value: PropertyListValue) -> Self? {
        switch value {
        case .real(let real): Self(exactly: real.rounded(.towardZero))
        case .string(let string):
            string.numeral.flatMap { Self($0) } ?? string.number.flatMap { coerce(.real($0)) }
        case .boolean(let boolean): boolean ? 1 : 0
        case .integer, .unsigned: exact(value)
        case .date, .data, .array, .dictionary, .sealed: nil
        }
    }
}

// MARK: - Reals

extension Double: ScalarValue {
    var stored: PropertyListValue { .real(PropertyListValue.canonical(self)) }

    static func exact(_ value: PropertyListValue) -> Double? {
        switch value {
        case .real(let real): real
        case .integer(let integer): Double(integer)
        case .unsigned(let unsigned): Double(unsigned)
        case .string, .boolean, .date, .data, .array, .dictionary, .sealed: nil
        }
    }

    static func coerce(_ value: PropertyListValue) -> Double? {
        switch value {
        case .string(let string): string.number
        case .boolean(let boolean): boolean ? 1 : 0
        case .integer, .unsigned, .real, .date, .data, .array, .dictionary, .sealed: exact(value)
        }
    }
}

extension Float: ScalarValue {
    var stored: PropertyListValue { Double(self).stored }

    static func exact(_ value: PropertyListValue) -> Float? { Double.exact(value).flatMap(nearest) }
    static func coerce(_ value: PropertyListValue) -> Float? {
        Double.coerce(value).flatMap(nearest)
    }

    /// The nearest `Float`, because other languages have no 32-bit 0.1. Nil if only infinity is
    /// near.
    private static func nearest(_ double: Double) -> Float? {
        let float = Float(double)
        return float.isInfinite && double.isFinite ? nil : float
    }
}

/// Stored as text, which other languages read exactly. Its own encoding is the words of its
/// mantissa.
extension Decimal: ScalarValue {
    var stored: PropertyListValue { .string(description) }

    static func exact(_ value: PropertyListValue) -> Decimal? {
        switch value {
        case .string(let string): decimal(string.string)
        case .integer(let integer): Decimal(integer)
        case .unsigned(let unsigned): Decimal(unsigned)
        // By its digits: 0.1 is meant to be 0.1.
        case .real(let real): decimal(real.isNaN ? "NaN" : "\(real)")
        case .boolean, .date, .data, .array, .dictionary, .sealed: nil
        }
    }

    private static func decimal(_ text: String) -> Decimal? {
        if text == "NaN" { return .nan }
        // Foundation's parser stops at unknown characters and would read "1.5 kg" as 1.5.
        guard text.utf8.allSatisfy("0123456789+-.eE".utf8.contains) else { return nil }
        return Decimal(string: text)
    }
}

// MARK: - Dates, data, addresses

extension Date: ScalarValue {
    var stored: PropertyListValue {
        .date(PropertyListValue.canonical(timeIntervalSinceReferenceDate))
    }

    static func exact(_ value: PropertyListValue) -> Date? {
        if case .date(let seconds) = value {
            Date(timeIntervalSinceReferenceDate: seconds)
        } else {
            nil
        }
    }
}

extension Data: ScalarValue {
    var stored: PropertyListValue { .data([UInt8](self)) }

    static func exact(_ value: PropertyListValue) -> Data? {
        if case .data(let bytes) = value { Data(bytes) } else { nil }
    }
}

/// Stored as text. Its own encoding is a dictionary that no other language expects.
extension URL: ScalarValue {
    var stored: PropertyListValue { .string(absoluteString) }

    static func exact(_ value: PropertyListValue) -> URL? {
        if case .string(let string) = value { URL(string: string.string) } else { nil }
    }
}
