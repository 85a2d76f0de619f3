// SPDX-License-Identifier: Apache-2.0

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
