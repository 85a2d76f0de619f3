// SPDX-License-Identifier: Apache-2.0

/// A value that is greater or less than another of its class: a number, a date or a string.
struct Magnitude: Sendable {
    enum Class: Int, Hashable, Sendable {
        case number, date, string
    }

    let `class`: Class
    let value: PropertyListValue
    private let size: Double

    /// Nil for a value of another type.
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

    /// A part's content that says up to where it is removed.
    static func removal(of value: PropertyListValue) -> PropertyListValue { .array([value]) }

    /// Nil for anything else than ``removal(of:)`` gives.
    init?(removed value: PropertyListValue) {
        guard case .array(let values) = value, values.count == 1 else { return nil }
        self.init(values[0])
    }

    /// An order of all: what is the same number in different types is ordered too, for every device
    /// must choose the same. That of classes means nothing.
    func isLess(than other: Magnitude) -> Bool {
        if `class` != other.class { return `class`.rawValue < other.class.rawValue }
        return size != other.size ? size < other.size : value < other.value
    }
}
