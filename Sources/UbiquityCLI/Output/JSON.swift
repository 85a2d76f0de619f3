// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquityWire

/// A JSON document to print. Fields keep the order in which readers want them.
indirect enum JSON {
    case null
    case boolean(Bool)
    case integer(Int)
    case real(Double)
    case string(String)
    case array([JSON])
    case object([(String, JSON)])
    /// A store's value in the typed form of the protocol, which distinguishes 1, 1.0 and true.
    case value(PropertyListValue)

    /// The document, on one line.
    var text: String {
        switch self {
        case .null: "null"
        case .boolean(let boolean): "\(boolean)"
        case .integer(let integer): "\(integer)"
        case .real(let real): real.isFinite ? "\(real)" : "null"
        case .string(let string): "\"" + Self.escaped(string) + "\""
        case .array(let values): "[" + values.map(\.text).joined(separator: ",") + "]"
        case .object(let fields):
            "{" + fields.map { JSON.string($0).text + ":" + $1.text }.joined(separator: ",") + "}"
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

extension JSON {
    static func optional(_ string: String?) -> JSON { string.map(JSON.string) ?? .null }

    /// A store's values, sorted by key.
    static func values(_ values: [Key: PropertyListValue]) -> JSON {
        .object(values.sorted { $0.key < $1.key }.map { ($0.key.string, .value($0.value)) })
    }
}
