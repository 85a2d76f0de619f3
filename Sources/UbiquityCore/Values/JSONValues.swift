// SPDX-License-Identifier: Apache-2.0

/// Values in JSON: plain, or in the exact form, the protocol's, which has a type for each value.
package enum JSONValues {
    /// Whether a file is JSON with a container as its root.
    package static func isJSON(_ bytes: [UInt8]) -> Bool {
        guard let text = try? PropertyList.utf8(bytes) else { return false }
        return SourceText.isJSON(text)
    }

    /// A plain value.
    /// - Throws: ``PropertyListError``.
    package static func value(_ bytes: [UInt8]) throws(PropertyListError) -> PropertyListValue {
        try PropertyList.checkSize(bytes)
        var reader = JSONReader(
            try PropertyList.utf8(bytes), depthMax: PropertyListValue.depthMax, unsupported: nil)
        return try reader.root()
    }

    /// The values of a store: an object whose entries are all in the exact form, or plain.
    /// - Parameter unsupported: Called for each entry that no store can hold, and that is then left
    ///   out.
    /// - Throws: ``PropertyListError``.
    package static func decode(
        _ bytes: [UInt8], unsupported: @escaping (ExactString, UnsupportedValue) -> Void
    ) throws(PropertyListError) -> PropertyListValue {
        try PropertyList.checkSize(bytes)
        var reader = JSONReader(
            try PropertyList.utf8(bytes), depthMax: depthMax, unsupported: unsupported)
        let root = try reader.root()
        guard case .dictionary(let entries) = root else { return root }
        let isExact = !entries.isEmpty && entries.values.allSatisfy(isTyped)
        var values: [ExactString: PropertyListValue] = [:]
        var faults: [(key: ExactString, value: UnsupportedValue)] = []
        for (key, value) in entries {
            do throws(UnsupportedValue) {
                values[key] =
                    isExact
                    ? try PropertyListValue(exact: value, depth: 1) : try checked(value, depth: 1)
            } catch { faults.append((key, error)) }
        }
        for var fault in faults.sorted(by: { reader.offset(of: $0.key) < reader.offset(of: $1.key) }
        ) {
            fault.value.place = reader.place(reader.offset(of: fault.key))
            unsupported(fault.key, fault.value)
        }
        return .dictionary(values)
    }

    /// In the exact form, each level of a value has up to four of JSON.
    private static let depthMax = 4 * PropertyListValue.depthMax + 1

    private static func isTyped(_ value: PropertyListValue) -> Bool {
        guard case .dictionary(let entries) = value, entries.count == 1 else { return false }
        return entries.allSatisfy { name, content in
            guard name == "sealed" else { return exactTypes.contains(name) }
            if case .dictionary = content { return true } else { return false }
        }
    }

    private static let exactTypes: Set<ExactString> = [
        "string", "boolean", "integer", "unsigned", "real", "date", "data", "array", "dictionary",
    ]

    private static func checked(
        _ value: PropertyListValue, depth: Int
    ) throws(UnsupportedValue) -> PropertyListValue {
        guard depth <= PropertyListValue.depthMax else { throw .tooDeep }
        switch value {
        case .array(let values):
            for value in values { _ = try checked(value, depth: depth + 1) }
        case .dictionary(let entries):
            for value in entries.values { _ = try checked(value, depth: depth + 1) }
        case .string, .boolean, .integer, .unsigned, .real, .date, .data, .sealed: break
        }
        return value
    }
}

extension PropertyListValue {
    /// - Parameter json: A server's value, in the exact form: one that is sealed is taken too.
    package init(received json: PropertyListValue) throws(UnsupportedValue) {
        guard case .dictionary(let fields) = json, fields.count == 1, let sealed = fields["sealed"]
        else {
            try self.init(exact: json, depth: 1)
            return
        }
        guard case .dictionary(let fields) = sealed, let box = SealedBox(exact: fields) else {
            throw UnsupportedValue("this is not the exact form of a value: sealed")
        }
        self = .sealed(box)
    }

    /// - Parameter json: A value of JSON in the exact form.
    init(exact json: PropertyListValue, depth: Int) throws(UnsupportedValue) {
        guard depth <= Self.depthMax else { throw .tooDeep }
        guard case .dictionary(let fields) = json, fields.count == 1, let field = fields.first
        else {
            throw UnsupportedValue("a value without a type, in the exact form")
        }
        let type = field.key
        switch type {
        case "sealed":
            throw UnsupportedValue("a sealed value, which only a device with its key can read")
        case "array":
            self = .array(
                try Self.values(try Self.elements(of: field.value, "values"), depth: depth))
        case "dictionary":
            self = .dictionary(
                try Self.entries(try Self.elements(of: field.value, "entries"), depth: depth))
        default:
            guard let leaf = Self.leaf(type, field.value) else {
                throw UnsupportedValue("this is not the exact form of a value: \(type.string)")
            }
            self = leaf
        }
    }

    // What a value of the deepest nesting calls once for each level, and what that calls, are parted:
    // a frame of WebAssembly has room for everything that was inlined, and a browser's stack is 1 MB.

    @inline(never)
    private static func values(
        _ list: [PropertyListValue], depth: Int
    ) throws(UnsupportedValue) -> [PropertyListValue] {
        var values: [PropertyListValue] = []
        for json in list {
            do throws(UnsupportedValue) {
                values.append(try PropertyListValue(exact: json, depth: depth + 1))
            } catch { throw error.within(index: values.count) }
        }
        return values
    }

    @inline(never)
    private static func entries(
        _ list: [PropertyListValue], depth: Int
    ) throws(UnsupportedValue) -> [ExactString: PropertyListValue] {
        var entries: [ExactString: PropertyListValue] = [:]
        for entry in list {
            guard case .dictionary(var fields) = entry,
                let json = fields.removeValue(forKey: "value")
            else { throw UnsupportedValue("an entry without a value, in the exact form") }
            let name = fields.removeValue(forKey: "key") ?? .string("")
            guard case .string(let key) = name, fields.isEmpty else {
                throw UnsupportedValue("an entry without a key, in the exact form")
            }
            do throws(UnsupportedValue) {
                let value = try PropertyListValue(exact: json, depth: depth + 1)
                guard entries.updateValue(value, forKey: key) == nil else {
                    throw UnsupportedValue(keyTwice)
                }
            } catch { throw error.within(key: key.string) }
        }
        return entries
    }

    @inline(never)
    private static func elements(
        of json: PropertyListValue, _ name: ExactString
    ) throws(UnsupportedValue) -> [PropertyListValue] {
        guard case .dictionary(let fields) = json, fields.keys.allSatisfy({ $0 == name }) else {
            throw UnsupportedValue("\(name) are missing, in the exact form")
        }
        switch fields[name] {
        case nil: return []
        case .array(let elements)?: return elements
        default: throw UnsupportedValue("\(name) are not an array, in the exact form")
        }
    }

    @inline(never)
    private static func leaf(_ type: ExactString, _ json: PropertyListValue) -> Self? {
        switch (type, json) {
        case ("string", .string), ("boolean", .boolean), ("integer", .integer): json
        case ("integer", .string(let text)): Int64(text.string).map(Self.integer)
        case ("unsigned", .string(let text)): UInt64(text.string).map(Self.init(unsigned:))
        case ("unsigned", .unsigned): json
        case ("real", _): number(json).map(Self.real)
        case ("date", _): number(json).map(Self.date)
        case ("data", .string(let text)): Base64.decode(text.string.utf8).map(Self.data)
        default: nil
        }
    }

    /// A number, or as text what JSON has no number for, and minus zero.
    private static func number(_ json: PropertyListValue) -> Double? {
        switch json {
        case .integer(let integer): Double(integer)
        case .unsigned(let unsigned): Double(unsigned)
        case .real(let real): real
        case .string("NaN"): .nan
        case .string("Infinity"): .infinity
        case .string("-Infinity"): -.infinity
        case .string("-0"): -0.0
        default: nil
        }
    }
}

extension SealedBox {
    /// Fields that are missing are zero, or empty, as in each message.
    fileprivate init?(exact fields: [ExactString: PropertyListValue]) {
        guard let generation = UInt32(exact: fields["generation"]),
            case .string(let text) = fields["box"] ?? .string(""),
            let bytes = Base64.decode(text.string.utf8)
        else { return nil }
        self.init(generation: generation, bytes: bytes)
    }
}

extension UInt32 {
    fileprivate init?(exact json: PropertyListValue?) {
        switch json {
        case nil: self = 0
        case .integer(let number)?: self.init(exactly: number)
        case .string(let text)?: self.init(text.string)
        default: return nil
        }
    }
}
