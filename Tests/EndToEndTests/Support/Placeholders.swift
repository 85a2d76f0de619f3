// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The texts that words in braces stand for. A word stands for the first text that it matches from
/// then on; `{any}` matches every text, and never stands for one.
struct Placeholders {
    private(set) var texts: [String: String]

    init(_ texts: [String: String]) { self.texts = texts }

    /// The text with all words replaced that are known.
    func filled(_ text: String) -> String {
        texts.reduce(text) { $0.replacingOccurrences(of: "{\($1.key)}", with: $1.value) }
    }

    /// - Returns: Where they differ; nil: they match.
    mutating func difference(
        _ expected: JSONValue, _ actual: JSONValue, at path: String = "$"
    ) -> String? {
        switch (expected, actual) {
        case (.string(let expected), .string(let actual)):
            return difference(expected, actual, at: path)
        case (.array(let expected), .array(let actual)) where expected.count == actual.count:
            for (index, pair) in zip(expected, actual).enumerated() {
                let difference = difference(pair.0, pair.1, at: "\(path)[\(index)]")
                if difference != nil { return difference }
            }
            return nil
        case (.object(let expected), .object(let actual))
        where Set(expected.keys) == Set(actual.keys):
            for (key, value) in expected.sorted(by: { $0.key < $1.key }) {
                let difference = difference(value, actual[key] ?? .null, at: "\(path).\(key)")
                if difference != nil { return difference }
            }
            return nil
        default: return expected == actual ? nil : "\(path): \(expected) is \(actual)"
        }
    }

    mutating func difference(_ expected: String, _ actual: String, at path: String) -> String? {
        if let name = Self.name(expected) {
            if name == "any" { return nil }
            if texts[name] == nil { texts[name] = actual }
        }
        let expected = filled(expected)
        return expected == actual ? nil : "\(path): \"\(expected)\" is \"\(actual)\""
    }

    private static func name(_ text: String) -> String? {
        guard text.hasPrefix("{"), text.hasSuffix("}"), text.count > 2 else { return nil }
        let name = text.dropFirst().dropLast()
        return name.allSatisfy(\.isLetter) ? String(name) : nil
    }
}

/// A JSON document, with its types kept apart.
enum JSONValue: Equatable, Decodable {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(text: String) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let boolean = try? container.decode(Bool.self) {
            self = .boolean(boolean)
        } else if let number = try? container.decode(Double.self) {
            self = .number(number)
        } else if let string = try? container.decode(String.self) {
            self = .string(string)
        } else if let array = try? container.decode([JSONValue].self) {
            self = .array(array)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }
}
