// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A change that an app made to a key whose writes merge, and that the store accepted.
///
/// Its number is part of what it wrote, as a ``Mark`` is for other keys, so that whoever sees the
/// value knows its author. Only a count has no room for it: it is identified by its part and number
/// of times.
package struct AppOperation: Sendable {
    package enum Act: Hashable, Sendable, Codable {
        /// Added to a counter, with this number of times under that part.
        case count(part: PartID, times: Int64, amount: Double)
        /// Offered a value for a maximum or minimum.
        case offer(part: PartID, Int64)
        /// Added an element.
        case add
        /// Removed the element that the operation with this number had added.
        case remove(Int)
        /// Set a field, over the value of the operation with that number.
        case put(String, over: Int?)
        case clear(String)
        /// Replaced the values of those operations.
        case replace([Int])
        /// Wrote the key like an app without a policy, having seen these records of it.
        case write(seen: [Key: PropertyListValue])
        /// Removed the key, having seen these records of it.
        case erase(seen: [Key: PropertyListValue])
    }

    package var number: Int
    package var process: Int
    package var disk: DiskReference
    package var key: Key
    package var act: Act
    /// The value that the app saw right after.
    package var seen: PropertyListValue?
    /// The true time.
    package var time: Int64

    package init(
        number: Int, process: Int, disk: DiskReference, key: Key, act: Act,
        seen: PropertyListValue?,
        time: Int64 = 0
    ) {
        self.number = number
        self.process = process
        self.disk = disk
        self.key = key
        self.act = act
        self.seen = seen
        self.time = time
    }
}

extension AppOperation {
    /// An offer has the number in its last digits. Greater offers are not always later ones.
    package static func offer(_ size: Int, number: Int) -> Int64 {
        Int64(size) * 10_000_000 + Int64(number)
    }

    /// The rule of apps that have their own. Neither of two values is always the later one.
    package static let resolver: Resolver = { max($0.value, $1.value) }

    /// The value of a part that the operation with this number wrote, except for counters.
    package static func value(_ number: Int) -> PropertyListValue { .string("p\(number)") }

    /// The number of times and the total in a run's part; nil if it is not a count.
    package static func count(
        in value: PropertyListValue?
    ) -> (times: Int64, total: Double)? {
        guard case .array(let fields)? = value, fields.count == 2,
            case .integer(let times) = fields[0], let total = fields[1].amount
        else { return nil }
        return (times, total)
    }

    /// Nil for anything but an integer.
    package static func integer(in value: PropertyListValue?) -> Int64? {
        switch value {
        case .integer(let number)?: number
        default: nil
        }
    }

    /// The inner key of a dictionary's entry in a sealed account; nil for anything else.
    static func field(in value: PropertyListValue?) -> String? {
        guard case .array(let pair)? = value, pair.count == 2, case .string(let field) = pair[0]
        else { return nil }
        return field.string
    }

    /// The number of the operation with this value; nil if there is none.
    package static func number(in value: PropertyListValue?) -> Int? {
        switch value {
        case .string(let text)? where text.string.hasPrefix("p"): Int(text.string.dropFirst())
        case .integer(let offer)?: Int(offer % 10_000_000)
        // A dictionary's entry in a sealed account, with its inner key.
        case .array(let pair)? where pair.count == 2 && field(in: value) != nil: number(in: pair[1])
        default: nil
        }
    }
}

extension PropertyListValue {
    /// Nil for anything but a number.
    package var amount: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        default: nil
        }
    }
}

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
        case string, boolean, integer, unsigned, real, date, data, array, dictionary,
            sealed
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
        case .sealed?, nil:
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
        // For messages alone: no app has one.
        case .sealed(let box): try container.encode(box.description, forKey: .sealed)
        }
    }
}
