// SPDX-License-Identifier: Apache-2.0

extension Keyring {
    /// The most generations that a device keeps.
    package static let generationsMax = 1_000
    /// The most stores of a device that is confined to some.
    package static let storesMax = 10_000

    /// The fields of its part of a file: for each generation the account's key in base64, or a
    /// dictionary with those of stores.
    package var fields: PropertyListValue {
        var fields: [ExactString: PropertyListValue] = [:]
        for (generation, root) in roots {
            let value: PropertyListValue
            switch root {
            case .account(let key): value = key.field
            case .stores(let keys):
                var stores: [ExactString: PropertyListValue] = [:]
                for (store, key) in keys { stores[ExactString(store.string)] = key.field }
                value = .dictionary(stores)
            }
            fields[ExactString("\(generation)")] = value
        }
        return .dictionary(fields)
    }

    /// Reads the keys from the fields of a file.
    /// - Throws: ``StoredFieldError``, also if there are more than ``generationsMax`` generations or
    ///   ``storesMax`` stores.
    package init(fields value: PropertyListValue) throws(StoredFieldError) {
        guard case .dictionary(let fields) = value, fields.count <= Self.generationsMax else {
            throw .otherForm
        }
        var roots: [UInt32: Root] = [:]
        for (name, value) in fields {
            guard let generation = UInt32(name.string), generation > 0,
                name == ExactString("\(generation)")
            else { throw .otherType(name.string) }
            roots[generation] = try Self.root(value, of: name)
        }
        self.init(roots)
    }

    private static func root(
        _ value: PropertyListValue, of name: ExactString
    ) throws(StoredFieldError) -> Root {
        guard case .dictionary(let fields) = value else {
            return .account(try Bytes32(field: value, of: name))
        }
        guard fields.count <= storesMax else { throw .otherType(name.string) }
        var keys: [StoreIdentifier: Bytes32] = [:]
        for (name, value) in fields {
            guard let store = try? StoreIdentifier(name.string) else {
                throw .otherType(name.string)
            }
            keys[store] = try Bytes32(field: value, of: name)
        }
        return .stores(keys)
    }
}

extension Bytes32 {
    fileprivate var field: PropertyListValue {
        .string(ExactString(String(decoding: Base64.encode(bytes), as: UTF8.self)))
    }

    fileprivate init(
        field: PropertyListValue, of name: ExactString
    ) throws(StoredFieldError) {
        guard case .string(let text) = field, let bytes = Base64.decode(text.string.utf8),
            let key = Bytes32(bytes)
        else { throw .otherType(name.string) }
        self = key
    }
}
