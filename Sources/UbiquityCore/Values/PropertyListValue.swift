// SPDX-License-Identifier: Apache-2.0

/// A value of a store: anything that a property list can hold, with all types kept distinct.
///
/// `true` is not 1, 1 is not 1.0, and a date keeps its full `Double`. Two values are equal if they
/// have the same type and the same bits, so "no change" means exactly that. There is one NaN:
/// initialisers for values from outside pass reals and dates through ``canonical(_:)``.
package enum PropertyListValue: Sendable {
    case string(ExactString)
    case boolean(Bool)
    case integer(Int64)
    /// An integer above `Int64.max`; smaller ones are ``integer(_:)``, see ``init(unsigned:)``.
    case unsigned(UInt64)
    case real(Double)
    /// Seconds since 2001-01-01 00:00:00 UTC.
    case date(Double)
    case data([UInt8])
    case array([PropertyListValue])
    case dictionary([ExactString: PropertyListValue])
    /// A value that cannot be read here. Only servers and records have one, never an app, a file, or
    /// a container.
    case sealed(SealedBox)

    /// The maximum nesting of containers. A value outside of any container has depth 1.
    package static let depthMax = 512

    /// The same rule as a sentence without a final full stop.
    package static let depthRule =
        "a value nests at most \(depthMax) levels: \(depthMax - 1) containers, and what is in them"
}

extension PropertyListValue {
    package init(unsigned value: UInt64) {
        self = Int64(exactly: value).map(Self.integer) ?? .unsigned(value)
    }

    /// A store's values as one dictionary.
    package static func entries(_ values: [Key: PropertyListValue]) -> Self {
        .dictionary(Dictionary(last: values.lazy.map { ($0.key.name, $0.value) }))
    }

    package static func string(_ string: String) -> Self { .string(ExactString(string)) }

    /// Any NaN becomes the store's one NaN. Other numbers stay as they are.
    package static func canonical(_ number: Double) -> Double { number.isNaN ? .nan : number }
}

extension PropertyListValue: Hashable {
    package static func == (a: Self, b: Self) -> Bool {
        switch (a, b) {
        case (.string(let a), .string(let b)): a == b
        case (.boolean(let a), .boolean(let b)): a == b
        case (.integer(let a), .integer(let b)): a == b
        case (.unsigned(let a), .unsigned(let b)): a == b
        case (.real(let a), .real(let b)), (.date(let a), .date(let b)):
            a.bitPattern == b.bitPattern
        case (.data(let a), .data(let b)): a == b
        case (.array(let a), .array(let b)): a == b
        case (.dictionary(let a), .dictionary(let b)): a == b
        case (.sealed(let a), .sealed(let b)): a == b
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(rank)
        switch self {
        case .string(let string): hasher.combine(string)
        case .boolean(let boolean): hasher.combine(boolean)
        case .integer(let integer): hasher.combine(integer)
        case .unsigned(let unsigned): hasher.combine(unsigned)
        case .real(let number), .date(let number): hasher.combine(number.bitPattern)
        case .data(let bytes): hasher.combine(bytes)
        case .array(let values): hasher.combine(values)
        case .dictionary(let entries): hasher.combine(entries)
        case .sealed(let box): hasher.combine(box)
        }
    }
}

/// An arbitrary total order, the same on every device. It decides between two writes with the same
/// timestamp and device.
///
/// Each level is compared in one pass: asking `a < b` and then `b < a` would double the work with
/// each nested container.
extension PropertyListValue: Comparable {
    package static func < (a: Self, b: Self) -> Bool { order(a, b) < 0 }

    /// Negative, zero or positive, as `a` is less than, equal to or greater than `b`.
    private static func order(_ a: Self, _ b: Self) -> Int {
        switch (a, b) {
        case (.string(let a), .string(let b)): order(of: a, b)
        case (.boolean(let a), .boolean(let b)): order(of: a ? 1 : 0, b ? 1 : 0)
        case (.integer(let a), .integer(let b)): order(of: a, b)
        case (.unsigned(let a), .unsigned(let b)): order(of: a, b)
        case (.real(let a), .real(let b)), (.date(let a), .date(let b)):
            order(of: a.bitPattern, b.bitPattern)
        case (.data(let a), .data(let b)): order(a, b, by: order(of:_:))
        case (.array(let a), .array(let b)): order(a, b, by: order)
        case (.dictionary(let a), .dictionary(let b)):
            order(a.inOrder { $0.key < $1.key }, b.inOrder { $0.key < $1.key }) { a, b in
                let keys = order(of: a.key, b.key)
                return keys != 0 ? keys : order(a.value, b.value)
            }
        case (.sealed(let a), .sealed(let b)): order(of: a, b)
        default: order(of: a.rank, b.rank)
        }
    }

    private static func order<Value: Comparable>(of a: Value, _ b: Value) -> Int {
        a < b ? -1 : (b < a ? 1 : 0)
    }

    /// The first differing element decides, otherwise the length.
    private static func order<Element>(
        _ a: [Element], _ b: [Element], by order: (Element, Element) -> Int
    ) -> Int {
        for (a, b) in zip(a, b) {
            let result = order(a, b)
            if result != 0 { return result }
        }
        return a.count - b.count
    }

    private var rank: Int {
        switch self {
        case .string: 1
        case .boolean: 2
        case .integer: 3
        case .unsigned: 4
        case .real: 5
        case .date: 6
        case .data: 7
        case .array: 8
        case .dictionary: 9
        case .sealed: 10
        }
    }
}

extension PropertyListValue {
    /// The size that counts towards the quota, in bytes.
    ///
    /// Independent of the encoding: a string's UTF-8 bytes, a data's bytes, 8 for a number or date,
    /// 1 for a Bool. A container counts its content, the UTF-8 bytes of its keys, and 8 for every
    /// element or entry, because each takes memory even if empty. See also
    /// ``SealedBox/quotaBytes``.
    package var quotaBytes: Int {
        switch self {
        case .string(let string): string.string.utf8.count
        case .boolean: 1
        case .integer, .unsigned, .real, .date: 8
        case .data(let bytes): bytes.count
        case .array(let values):
            values.reduce(0) { $0 + Self.elementBytes + $1.quotaBytes }
        case .dictionary(let entries):
            entries.reduce(0) {
                $0 + Self.elementBytes + $1.key.string.utf8.count + $1.value.quotaBytes
            }
        case .sealed(let box): box.quotaBytes
        }
    }

    private static var elementBytes: Int { 8 }
}
