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
