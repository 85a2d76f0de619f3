// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension Key: Codable {
    package init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        self = try Key(try container.decode(String.self))
        if !container.isAtEnd { self = part(try container.decode(PartID.self)) }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        try container.encode(string)
        if let part { try container.encode(part) }
    }
}

extension PartID: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let part = PartID(try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "The name of a part is empty or too long.")
        }
        self = part
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text.string)
    }
}

extension PropertyListValue: Codable {
    /// A list of entries rather than a dictionary of strings, in which two keys that look alike
    /// would be one.
    private struct Entry: Codable {
        var key: String
        var value: PropertyListValue
    }

    private enum CodingKeys: String, CodingKey {
        case string, boolean, integer, unsigned, real, date, data, array, dictionary
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func decode<T: Decodable>(_ key: CodingKeys) throws -> T {
            try container.decode(T.self, forKey: key)
        }
        switch container.allKeys.first {
        case .string?: self = .string(try decode(.string) as String)
        case .boolean?: self = .boolean(try decode(.boolean))
        case .integer?: self = .integer(try decode(.integer))
        case .unsigned?: self = .unsigned(try decode(.unsigned))
        case .real?: self = .real(try decode(.real))
        case .date?: self = .date(try decode(.date))
        case .data?: self = .data(try decode(.data))
        case .array?: self = .array(try decode(.array))
        case .dictionary?:
            let entries: [Entry] = try decode(.dictionary)
            self = .dictionary(
                Dictionary(entries.map { (ExactString($0.key), $0.value) }) { first, _ in first })
        case nil:
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath, debugDescription: "A value has no type."))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .string(let value): try container.encode(value.string, forKey: .string)
        case .boolean(let value): try container.encode(value, forKey: .boolean)
        case .integer(let value): try container.encode(value, forKey: .integer)
        case .unsigned(let value): try container.encode(value, forKey: .unsigned)
        case .real(let value): try container.encode(value, forKey: .real)
        case .date(let value): try container.encode(value, forKey: .date)
        case .data(let value): try container.encode(value, forKey: .data)
        case .array(let value): try container.encode(value, forKey: .array)
        case .dictionary(let value):
            try container.encode(
                value.map { Entry(key: $0.string, value: $1) }, forKey: .dictionary)
        }
    }
}
