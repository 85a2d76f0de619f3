// SPDX-License-Identifier: Apache-2.0

/// The fields of a JSON object of the protocol: protobuf's JSON mapping, in which a missing field has
/// its default value, and a number of 64 bits may be text.
struct WireFields {
    private let fields: [ExactString: PropertyListValue]

    init(_ value: PropertyListValue) throws(WireFault) {
        guard case .dictionary(let fields) = value else { throw WireFault("it has another form") }
        self.fields = fields
    }

    /// - Throws: ``WireFault`` for bytes that are not a JSON object, or exceed the bounds.
    init(_ json: [UInt8], within bounds: MessageBounds) throws(WireFault) {
        guard json.count <= bounds.bytes, Self.elements(in: json) <= bounds.elements else {
            throw WireFault("it is too large")
        }
        // In the exact form, each level of a value has up to four of JSON, and a few are around it.
        let depthMax = 4 * PropertyListValue.depthMax + 16
        let value: PropertyListValue
        do throws(PropertyListError) {
            var reader = JSONReader(json, depthMax: depthMax, unsupported: nil)
            value = try reader.root()
        } catch { throw WireFault(error.description) }
        try self.init(value)
    }

    private static func elements(in json: [UInt8]) -> Int {
        var (count, isText, isEscaped) = (0, false, false)
        for byte in json {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isText.toggle()
            } else if isText {
                isEscaped = byte == UInt8(ascii: "\\")
            } else if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "[")
                || byte == UInt8(ascii: "{")
            {
                count += 1
            }
        }
        return count
    }

    subscript(_ name: ExactString) -> PropertyListValue? { fields[name] }

    func text(_ name: ExactString) throws(WireFault) -> String {
        switch fields[name] {
        case nil: return ""
        case .string(let text): return text.string
        default: throw .otherType(name)
        }
    }

    func flag(_ name: ExactString) throws(WireFault) -> Bool {
        switch fields[name] {
        case nil: return false
        case .boolean(let flag): return flag
        default: throw .otherType(name)
        }
    }

    func number(_ name: ExactString) throws(WireFault) -> UInt64 {
        let number: UInt64?
        switch fields[name] {
        case nil: return 0
        case .integer(let integer): number = UInt64(exactly: integer)
        case .unsigned(let unsigned): number = unsigned
        case .string(let text): number = UInt64(text.string)
        default: number = nil
        }
        guard let number else { throw .otherType(name) }
        return number
    }

    func real(_ name: ExactString) throws(WireFault) -> Double {
        switch fields[name] {
        case nil: return 0
        case .integer(let integer): return Double(integer)
        case .real(let real): return real
        default: throw .otherType(name)
        }
    }

    func object(_ name: ExactString) throws(WireFault) -> WireFields? {
        guard let value = fields[name] else { return nil }
        return try WireFields(value)
    }

    func list(_ name: ExactString) throws(WireFault) -> [PropertyListValue] {
        switch fields[name] {
        case nil: return []
        case .array(let elements): return elements
        default: throw .otherType(name)
        }
    }

    /// A server's time in milliseconds since 1970, limited to the 48 bits of writes' timestamps.
    func milliseconds(_ name: ExactString) throws(WireFault) -> Int64 {
        Int64(min(try number(name), 1 << 48 - 1))
    }
}

/// The reason a message of the server cannot be understood.
struct WireFault: Error {
    let description: String

    init(_ description: String) { self.description = description }

    static func otherType(_ name: ExactString) -> Self {
        WireFault("\"\(name.string)\" has another type")
    }
}
