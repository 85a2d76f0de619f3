// SPDX-License-Identifier: Apache-2.0

/// The fields of a stored dictionary: of a device's own state, or of an archive. An absent field is nil, a field of
/// another type is an error, and an unknown field is ignored.
package struct StoredFields: Sendable {
    private let fields: [ExactString: PropertyListValue]

    package init(_ fields: [ExactString: PropertyListValue]) { self.fields = fields }

    /// - Throws: ``StoredFieldError`` if the value is not a dictionary.
    package init(_ value: PropertyListValue) throws(StoredFieldError) {
        guard case .dictionary(let fields) = value else { throw .otherForm }
        self.fields = fields
    }

    /// Nil if the field is absent.
    package subscript(_ name: ExactString) -> PropertyListValue? { fields[name] }

    package func string(_ name: ExactString) throws(StoredFieldError) -> String? {
        guard let value = fields[name] else { return nil }
        guard case .string(let string) = value else { throw .otherType(name.string) }
        return string.string
    }

    /// A string that must be there and is one of several words.
    package func word(_ name: ExactString) throws(StoredFieldError) -> ExactString {
        ExactString(try text(name))
    }

    /// One of a type's words; nil if the field is absent.
    package func choice<Choice: CaseIterable & RawRepresentable<String>>(
        _ name: ExactString
    ) throws(StoredFieldError) -> Choice? {
        guard let word = try string(name) else { return nil }
        for choice in Choice.allCases where ExactString(choice.rawValue) == ExactString(word) {
            return choice
        }
        throw .otherType(name.string)
    }

    /// A string that must be there.
    package func text(_ name: ExactString) throws(StoredFieldError) -> String {
        try Self.need(string(name), name)
    }

    package func boolean(_ name: ExactString) throws(StoredFieldError) -> Bool? {
        guard let value = fields[name] else { return nil }
        guard case .boolean(let boolean) = value else { throw .otherType(name.string) }
        return boolean
    }

    /// Any integer that the type can represent.
    package func integer<Integer: FixedWidthInteger>(
        _ name: ExactString, as type: Integer.Type = Integer.self
    ) throws(StoredFieldError) -> Integer? {
        let integer: Integer?
        switch fields[name] {
        case nil: return nil
        case .integer(let number): integer = Integer(exactly: number)
        case .unsigned(let number): integer = Integer(exactly: number)
        default: integer = nil
        }
        guard let integer else { throw .otherType(name.string) }
        return integer
    }

    package func real(_ name: ExactString) throws(StoredFieldError) -> Double? {
        guard let value = fields[name] else { return nil }
        guard case .real(let real) = value else { throw .otherType(name.string) }
        return real
    }

    package func array(
        _ name: ExactString
    ) throws(StoredFieldError) -> [PropertyListValue]? {
        guard let value = fields[name] else { return nil }
        guard case .array(let elements) = value else { throw .otherType(name.string) }
        return elements
    }

    package func fields(_ name: ExactString) throws(StoredFieldError) -> StoredFields? {
        guard let value = fields[name] else { return nil }
        guard case .dictionary(let fields) = value else { throw .otherType(name.string) }
        return StoredFields(fields)
    }

    /// All fields, if each is a string.
    package func strings() throws(StoredFieldError) -> [ExactString: ExactString] {
        var strings: [ExactString: ExactString] = [:]
        for (name, value) in fields {
            guard case .string(let string) = value else { throw .otherType(name.string) }
            strings[name] = string
        }
        return strings
    }

    /// - Throws: ``StoredFieldError/missing(_:)`` for nil.
    package static func need<Value>(
        _ value: Value?, _ name: ExactString
    ) throws(StoredFieldError) -> Value {
        guard let value else { throw .missing(name.string) }
        return value
    }
}

/// The reason stored fields cannot be read.
package enum StoredFieldError: Error, Hashable, Sendable {
    case otherForm
    case otherType(_ name: String)
    case missing(_ name: String)
}

extension StoredFieldError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .otherForm: "it has a different form"
        case .otherType(let name): "\"\(name)\" has a different type"
        case .missing(let name): "\"\(name)\" is missing"
        }
    }
}
