// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// One place in the growing value of a `Codable` type that encodes itself.
///
/// Foundation's `PropertyListEncoder` is not used for several reasons. It writes nil as the string
/// "$null", so an array with nil is stored silently, and it reads the string "$null" as nil, so a
/// struct with that text cannot be decoded. A `Float` that another language wrote as 0.1 "does not
/// fit". A `URL` and a `Decimal` become dictionaries of their internals. Sets, and dictionaries
/// with enums as keys, become arrays whose order changes with each run, so writing an equal value
/// would be a change.
///
/// Containers are used within one call of ``encode(_:at:)`` at a time, and refer to their place.
final class PropertyListValueEncoder: Encoder {
    private enum Shape { case undecided, null, scalar(PropertyListValue), array, dictionary }

    /// The content of one place in a container.
    private enum Part {
        case value(PropertyListValue?)
        /// A nested container, which may still grow.
        case open(PropertyListValueEncoder)
    }

    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }
    private var shape = Shape.undecided
    private var elements: [Part] = []
    private var entries: [ExactString: Part] = [:]

    private init(at path: [any CodingKey]) { codingPath = path }

    /// Nil if the value is nil.
    static func encode<Value: Encodable>(
        _ value: Value, at path: [any CodingKey]
    ) throws -> PropertyListValue? {
        try checkDepth(path)
        if let scalar = value as? any ScalarValue { return scalar.stored }
        if Value.self == Int128.self || Value.self == UInt128.self {
            throw refusal(.type(of: value), at: path)
        }
        let encoder = PropertyListValueEncoder(at: path)
        try value.encode(to: encoder)
        guard let collection = Value.self as? any HashedCollection.Type else {
            return try encoder.finish(refusingNil: false)
        }
        return try encoder.finish(refusingNil: true).map(collection.canonical)
    }

    /// - Parameter refusingNil: Whether nil is an error in a dictionary too. A nil property can be
    ///   omitted, but an entry of a dictionary would be lost.
    private func finish(refusingNil: Bool) throws -> PropertyListValue? {
        try Self.checkDepth(codingPath)
        switch shape {
        case .null: return nil
        case .scalar(let value): return value
        case .undecided: return .dictionary([:])
        case .array:
            return .array(
                try elements.enumerated().map { index, part in
                    if let value = try Self.finish(part) { return value }
                    throw Self.refusal(.isNil(), at: codingPath + [IndexKey(index)])
                })
        case .dictionary:
            let values = try entries.compactMapValues(Self.finish)
            if refusingNil, let key = entries.keys.first(where: { values[$0] == nil }) {
                throw Self.refusal(UnsupportedValue.isNil().within(key: key.string), at: codingPath)
            }
            return .dictionary(values)
        }
    }

    private static func finish(_ part: Part) throws -> PropertyListValue? {
        switch part {
        case .value(let value): value
        case .open(let encoder): try encoder.finish(refusingNil: false)
        }
    }

    private static func checkDepth(_ path: [any CodingKey]) throws {
        guard path.count < PropertyListValue.depthMax else { throw UnsupportedValue.tooDeep }
    }

    private static func refusal(
        _ error: UnsupportedValue, at path: [any CodingKey]
    ) -> UnsupportedValue {
        UnsupportedValue(error.reason, path: path.text + error.path)
    }

    // MARK: - Encoder

    func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        if case .undecided = shape { shape = .dictionary }
        guard case .dictionary = shape else { preconditionFailure(Self.twoShapes) }
        return KeyedEncodingContainer(Keyed(place: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        if case .undecided = shape { shape = .array }
        guard case .array = shape else { preconditionFailure(Self.twoShapes) }
        return Unkeyed(place: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    private static let twoShapes =
        "A type's encode(to:) requested two kinds of containers in one place."

    // MARK: - For the containers

    private var count: Int { elements.count }

    private func put(_ part: Part, at key: any CodingKey) {
        if key is IndexKey {
            elements.append(part)
        } else {
            entries[ExactString(key.stringValue)] = part
        }
    }

    private func put(_ value: some Encodable, at key: any CodingKey) throws {
        put(.value(try Self.encode(value, at: codingPath + [key])), at: key)
    }

    private func putNil(at key: any CodingKey) { put(.value(nil), at: key) }

    private func open(_ key: any CodingKey) -> PropertyListValueEncoder {
        let encoder = PropertyListValueEncoder(at: codingPath + [key])
        put(.open(encoder), at: key)
        return encoder
    }
}

extension PropertyListValueEncoder: SingleValueEncodingContainer {
    func encodeNil() { shape = .null }

    func encode<Value: Encodable>(_ value: Value) throws {
        shape = try Self.encode(value, at: codingPath).map(Shape.scalar) ?? .null
    }
}

// Each generic method below covers all protocol requirements, one for each basic type.

extension PropertyListValueEncoder {
    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let place: PropertyListValueEncoder
        var codingPath: [any CodingKey] { place.codingPath }

        func encodeNil(forKey key: Key) { place.putNil(at: key) }

        func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
            try place.put(value, at: key)
        }

        func nestedContainer<Nested>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> { place.open(key).container(keyedBy: type) }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            place.open(key).unkeyedContainer()
        }

        func superEncoder() -> any Encoder { place.open(SuperKey()) }
        func superEncoder(forKey key: Key) -> any Encoder { place.open(key) }
    }

    private struct Unkeyed: UnkeyedEncodingContainer {
        let place: PropertyListValueEncoder
        var codingPath: [any CodingKey] { place.codingPath }
        var count: Int { place.count }
        private var next: IndexKey { IndexKey(count) }

        init(place: PropertyListValueEncoder) { self.place = place }

        func encodeNil() { place.putNil(at: next) }
        func encode<Value: Encodable>(_ value: Value) throws { try place.put(value, at: next) }

        func nestedContainer<Nested>(
            keyedBy type: Nested.Type
        ) -> KeyedEncodingContainer<Nested> { place.open(next).container(keyedBy: type) }

        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
            place.open(next).unkeyedContainer()
        }

        func superEncoder() -> any Encoder { place.open(next) }
    }
}
