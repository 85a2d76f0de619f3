// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// One place in a stored value, from which a `Codable` type decodes itself.
///
/// The counterpart of ``PropertyListValueEncoder``, which says why it is not Foundation's.
struct PropertyListValueDecoder: Decoder {
    /// Nil if there is nothing in this place.
    private let value: PropertyListValue?
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    init(_ value: PropertyListValue?, at path: [any CodingKey]) {
        self.value = value
        codingPath = path
    }

    func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        guard case .dictionary(let entries) = value else {
            throw mismatch([String: Any].self, "dictionary")
        }
        return KeyedDecodingContainer(Keyed(entries: entries, codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        guard case .array(let elements) = value else { throw mismatch([Any].self, "array") }
        return Unkeyed(elements: elements, codingPath: codingPath)
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    private func mismatch(_ type: Any.Type, _ name: String) -> DecodingError {
        let context = DecodingError.Context(
            codingPath: codingPath,
            debugDescription: "expected \(name), found \(value?.kind ?? "nothing")")
        return value == nil ? .valueNotFound(type, context) : .typeMismatch(type, context)
    }
}

extension PropertyListValueDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { value == nil }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let scalar = Value.self as? any ScalarValue.Type {
            if let decoded = value.flatMap(scalar.exact) as? Value { return decoded }
            throw mismatch(type, "\(type)")
        }
        if Value.self == Int128.self || Value.self == UInt128.self {
            throw mismatch(type, "\(type)")
        }
        if let collection = Value.self as? any HashedCollection.Type {
            return try Value(from: Self(value.map(collection.opened), at: codingPath))
        }
        return try Value(from: self)
    }
}

// Each generic method below covers all protocol requirements, one for each basic type.

extension PropertyListValueDecoder {
    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let entries: [ExactString: PropertyListValue]
        let codingPath: [any CodingKey]

        var allKeys: [Key] { entries.keys.compactMap { Key(stringValue: $0.string) } }
        func contains(_ key: Key) -> Bool { value(key) != nil }
        /// A property that is nil was omitted.
        func decodeNil(forKey key: Key) -> Bool { !contains(key) }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            guard contains(key) || type is any ExpressibleByNilLiteral.Type else {
                let context = DecodingError.Context(
                    codingPath: codingPath, debugDescription: "\"\(key.stringValue)\" is missing")
                throw DecodingError.keyNotFound(key, context)
            }
            return try place(key).decode(type)
        }

        func nestedContainer<Nested>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { try place(key).container(keyedBy: type) }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try place(key).unkeyedContainer()
        }

        func superDecoder() -> any Decoder { place(SuperKey()) }
        func superDecoder(forKey key: Key) -> any Decoder { place(key) }

        private func value(_ key: any CodingKey) -> PropertyListValue? {
            entries[ExactString(key.stringValue)]
        }

        private func place(_ key: any CodingKey) -> PropertyListValueDecoder {
            PropertyListValueDecoder(value(key), at: codingPath + [key])
        }
    }

    private struct Unkeyed: UnkeyedDecodingContainer {
        let elements: [PropertyListValue]
        let codingPath: [any CodingKey]
        private(set) var currentIndex = 0

        init(elements: [PropertyListValue], codingPath: [any CodingKey]) {
            self.elements = elements
            self.codingPath = codingPath
        }

        var count: Int? { elements.count }
        var isAtEnd: Bool { currentIndex >= elements.count }
        func decodeNil() -> Bool { false }

        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            try next { try $0.decode(type) }
        }

        mutating func nestedContainer<Nested>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> { try next { try $0.container(keyedBy: type) } }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try next { try $0.unkeyedContainer() }
        }

        mutating func superDecoder() throws -> any Decoder { try next(\.self) }

        /// An element that could not be decoded stays the next one, so that a type can try another
        /// form.
        private mutating func next<Result>(
            _ body: (PropertyListValueDecoder) throws -> Result
        ) throws -> Result {
            let element = isAtEnd ? nil : elements[currentIndex]
            let place = PropertyListValueDecoder(element, at: codingPath + [IndexKey(currentIndex)])
            let result = try body(place)
            currentIndex += 1
            return result
        }
    }
}
