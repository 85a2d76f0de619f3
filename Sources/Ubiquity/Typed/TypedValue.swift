// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Converts between values of an app's own types and stored values, without a store.
///
/// ``UbiquityKey`` describes the forms.
package enum TypedValue {
    /// Encodes a value for the store; nil if the value is nil and its key is to be removed.
    ///
    /// - Throws: ``UnsupportedValue`` that says what cannot be encoded, and where.
    package static func encode(
        _ value: some Encodable
    ) throws(UnsupportedValue) -> PropertyListValue? {
        do { return try PropertyListValueEncoder.encode(value, at: []) } catch {
            switch error {
            case let error as UnsupportedValue: throw error
            case EncodingError.invalidValue(_, let context):
                throw UnsupportedValue(context.debugDescription, path: context.codingPath.text)
            default: throw UnsupportedValue("\(error)")
            }
        }
    }

    /// Decodes a stored value as a type of the app.
    ///
    /// - Parameter exactly: Whether numbers, Bools and texts are not read as each other.
    /// - Throws: ``UnreadableValue`` that says what has a different type, and where.
    package static func decode<Value: Decodable>(
        _ stored: PropertyListValue, as type: Value.Type, exactly: Bool = false
    ) throws(UnreadableValue) -> Value {
        if let scalar = Value.self as? any ScalarValue.Type {
            let value = exactly ? scalar.exact(stored) : scalar.coerce(stored)
            if let value = value as? Value { return value }
            throw UnreadableValue("expected \(Value.self), found \(stored.kind)")
        }
        if let optional = Value.self as? any OptionalValue.Type {
            let value = try optional.decodeWrapped(stored, exactly: exactly)
            if let value = value as? Value { return value }
        }
        do { return try PropertyListValueDecoder(stored, at: []).decode(Value.self) } catch {
            throw UnreadableValue(error)
        }
    }
}

/// The reason a stored value cannot be read as the requested type.
package struct UnreadableValue: Error, Hashable, Sendable, CustomStringConvertible {
    /// The place and the problem, such as ".levels[3]: expected Int, found a string".
    package var description: String

    init(_ description: String) { self.description = description }

    fileprivate init(_ error: any Error) {
        switch error {
        case DecodingError.typeMismatch(_, let context),
            DecodingError.valueNotFound(_, let context),
            DecodingError.keyNotFound(_, let context), DecodingError.dataCorrupted(let context):
            let path = context.codingPath.text
            self.init((path.isEmpty ? "" : path + ": ") + context.debugDescription)
        default: self.init("\(error)")
        }
    }
}

/// An optional of a type that can be read. Nil is never stored, so it reads as what it wraps.
private protocol OptionalValue {
    static func decodeWrapped(
        _ stored: PropertyListValue, exactly: Bool
    ) throws(UnreadableValue) -> Any
}

extension Optional: OptionalValue where Wrapped: Decodable {
    static func decodeWrapped(
        _ stored: PropertyListValue, exactly: Bool
    ) throws(UnreadableValue) -> Any {
        try TypedValue.decode(stored, as: Wrapped.self, exactly: exactly)
    }
}

/// The place of an element in an array, or in a value that encodes itself as one.
struct IndexKey: CodingKey {
    let index: Int
    var intValue: Int? { index }
    var stringValue: String { "\(index)" }

    init(_ index: Int) { self.index = index }
    init(intValue: Int) { self.init(intValue) }
    init?(stringValue: String) { nil }
}

/// The place of the superclass's part in an encoded object.
struct SuperKey: CodingKey {
    var intValue: Int? { nil }
    var stringValue: String { "super" }

    init() {}
    init?(intValue: Int) { nil }
    init?(stringValue: String) { nil }
}

extension [any CodingKey] {
    /// For example `.levels[3]`, as ``UnsupportedValue`` writes it.
    var text: String {
        map { $0 is IndexKey ? "[\($0.stringValue)]" : ".\($0.stringValue)" }.joined()
    }
}

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
