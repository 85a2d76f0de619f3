// SPDX-License-Identifier: Apache-2.0

/// A number that can be added and subtracted. It stays an integer as long as all operands are
/// integers.
package struct Number: Hashable, Sendable {
    private enum Kind: Hashable {
        case integer(Int64)
        case real(Double)
    }

    private let kind: Kind

    package static let zero = Number(kind: .integer(0))

    private init(kind: Kind) { self.kind = kind }

    /// Fails for a value that is not a number; a Bool is not one.
    package init?(_ value: PropertyListValue) {
        switch value {
        case .integer(let number): kind = .integer(number)
        case .unsigned(let number): kind = .real(Double(number))
        case .real(let number): kind = .real(number)
        default: return nil
        }
    }

    package var value: PropertyListValue {
        switch kind {
        case .integer(let number): .integer(number)
        case .real(let number): .real(PropertyListValue.canonical(number))
        }
    }

    var isZero: Bool {
        switch kind {
        case .integer(let number): number == 0
        case .real(let number): number == 0
        }
    }

    var real: Double {
        switch kind {
        case .integer(let number): Double(number)
        case .real(let number): number
        }
    }

    /// An integer that overflows becomes the nearest `Int64`.
    package static func + (a: Number, b: Number) -> Number {
        guard case .integer(let a) = a.kind, case .integer(let b) = b.kind else {
            return Number(kind: .real(a.real + b.real))
        }
        let (sum, overflow) = a.addingReportingOverflow(b)
        return Number(kind: .integer(overflow ? (b < 0 ? .min : .max) : sum))
    }

    package static func - (a: Number, b: Number) -> Number {
        guard case .integer(let a) = a.kind, case .integer(let b) = b.kind else {
            return Number(kind: .real(a.real - b.real))
        }
        let (difference, overflow) = a.subtractingReportingOverflow(b)
        return Number(kind: .integer(overflow ? (b < 0 ? .max : .min) : difference))
    }
}

/// A value that can be compared with others of its class: a number, a date or a string.
struct ComparableValue: Sendable {
    enum Class: Int, Hashable, Sendable {
        case number, date, string
    }

    let `class`: Class
    let value: PropertyListValue
    private let size: Double

    /// Fails for a value of another type.
    init?(_ value: PropertyListValue) {
        switch value {
        case .integer(let number): (`class`, size) = (.number, Double(number))
        case .unsigned(let number): (`class`, size) = (.number, Double(number))
        case .real(let number): (`class`, size) = (.number, number.isNaN ? -.infinity : number)
        case .date(let number): (`class`, size) = (.date, number.isNaN ? -.infinity : number)
        case .string: (`class`, size) = (.string, 0)
        default: return nil
        }
        self.value = value
    }

    /// The content of a part that says up to which value it is removed.
    static func removal(of value: PropertyListValue) -> PropertyListValue { .array([value]) }

    /// Fails for anything that ``removal(of:)`` does not produce.
    init?(removed value: PropertyListValue) {
        guard case .array(let values) = value, values.count == 1 else { return nil }
        self.init(values[0])
    }

    /// A total order. The same number in different types is ordered as well, because every device
    /// must choose the same. The order of the classes is arbitrary.
    func isLess(than other: ComparableValue) -> Bool {
        if `class` != other.class { return `class`.rawValue < other.class.rawValue }
        return size != other.size ? size < other.size : value < other.value
    }
}
