// SPDX-License-Identifier: Apache-2.0

import Foundation
import UbiquityCore
import UbiquityWire

/// A JSON document to print. Fields keep the order in which readers want them.
indirect enum JSON {
    case null
    case boolean(Bool)
    case integer(Int)
    case unsigned(UInt64)
    case real(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])
    /// A store's value, in one of two forms.
    case value(PropertyListValue)

    /// The document, on one line.
    var text: String { text() }

    /// - Parameter isExact: Whether values are in the typed form of the protocol, which
    ///   distinguishes 1, 1.0 and true, and keeps every value.
    func text(isExact: Bool = false) -> String {
        switch self {
        case .null: "null"
        case .boolean(let boolean): "\(boolean)"
        case .integer(let integer): "\(integer)"
        case .unsigned(let unsigned): "\(unsigned)"
        case .real(let real): real.isFinite ? "\(real)" : "null"
        case .string(let string): "\"" + Self.escaped(string) + "\""
        case .array(let values):
            "[" + values.map { $0.text(isExact: isExact) }.joined(separator: ",") + "]"
        case .object(let fields):
            "{"
                + fields.map { JSON.string($0).text + ":" + $1.text(isExact: isExact) }
                .joined(separator: ",") + "}"
        case .value(let value) where !isExact: JSON.plain(value).text
        case .value(let value):
            // Only strings contain characters that are escaped here.
            String(decoding: WireFormat.json.encode(WireValue(value)), as: UTF8.self).visible()
        }
    }

    /// The content of a JSON string, on one line and without characters that would move a
    /// terminal's cursor.
    static func escaped(_ string: String) -> String {
        string.escaped { $0.isControl || $0 == "\"" || $0 == "\\" }
    }
}

extension JSON: ExpressibleByDictionaryLiteral {
    init(dictionaryLiteral fields: (String, JSON)...) { self = .object(fields) }
}

extension JSON {
    /// The value as most programs expect it: numbers, ISO dates, base64, plain arrays and objects.
    /// Numbers that JSON does not have are strings, as in the protocol.
    private static func plain(_ value: PropertyListValue) -> JSON {
        switch value {
        case .string(let string): .string(string.string)
        case .boolean(let boolean): .boolean(boolean)
        case .integer(let integer): .integer(Int(integer))
        case .unsigned(let unsigned): .unsigned(unsigned)
        case .real(let real):
            if real.isFinite {
                .real(real)
            } else {
                .string(real.isNaN ? "NaN" : real < 0 ? "-Infinity" : "Infinity")
            }
        case .date(let seconds): .string(DateText.text(of: seconds))
        case .data(let bytes): .string(Data(bytes).base64EncodedString())
        case .sealed(let box): .string(box.description)
        case .array(let values): .array(values.map(plain))
        case .dictionary(let entries):
            .object(
                entries.sorted { $0.key < $1.key }.map { ($0.key.string, plain($0.value)) })
        }
    }

    static func optional(_ string: String?) -> JSON { string.map(JSON.string) ?? .null }

    /// A store's values, sorted by key.
    static func values(_ values: [UbiquityCore.Key: PropertyListValue]) -> JSON {
        .object(values.sorted { $0.key < $1.key }.map { ($0.key.string, .value($0.value)) })
    }
}
