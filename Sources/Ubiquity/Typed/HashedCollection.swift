// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A set or a dictionary, whose order changes from run to run. The stored order must not change, or
/// writing an equal value would count as a change.
protocol HashedCollection {
    /// The value to store for the type's own encoding.
    static func canonical(_ value: PropertyListValue) -> PropertyListValue
    /// The type's own encoding for a stored value.
    static func opened(_ value: PropertyListValue) -> PropertyListValue
}

extension Set: HashedCollection {
    static func canonical(_ value: PropertyListValue) -> PropertyListValue {
        if case .array(let elements) = value { .array(elements.sorted()) } else { value }
    }

    static func opened(_ value: PropertyListValue) -> PropertyListValue { value }
}

/// A dictionary encodes itself in a keyed container if its keys are `CodingKeyRepresentable`, as
/// `String` and `Int` are, and otherwise as an array of alternating keys and values. Such an array
/// is stored as a dictionary if the keys encode as strings, as those of an enum or a `UUID` do.
extension Dictionary: HashedCollection {
    static func canonical(_ value: PropertyListValue) -> PropertyListValue {
        guard case .array(let list) = value else { return value }
        let pairs = stride(from: 0, to: list.count - 1, by: 2).map { (list[$0], list[$0 + 1]) }
        let entries = pairs.compactMap { key, value in
            if case .string(let string) = key { (string, value) } else { nil }
        }
        let dictionary = Dictionary<ExactString, PropertyListValue>(entries) { first, _ in first }
        if dictionary.count == pairs.count { return .dictionary(dictionary) }
        return .array(pairs.sorted { $0.0 < $1.0 }.flatMap { [$0, $1] })
    }

    static func opened(_ value: PropertyListValue) -> PropertyListValue {
        guard !hasKeyedContainer, case .dictionary(let entries) = value else { return value }
        return .array(entries.flatMap { [.string($0), $1] })
    }

    private static var hasKeyedContainer: Bool { Key.self is any CodingKeyRepresentable.Type }
}
