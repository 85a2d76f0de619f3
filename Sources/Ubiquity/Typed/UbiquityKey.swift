// SPDX-License-Identifier: Apache-2.0

/// The name of a value together with its type, and what stands for it while there is none.
///
/// Declared in an extension of ``UbiquityKeys``, and used as `store[.volume]`.
///
/// What a value becomes in the store is what other languages have too. A string, a Bool, an integer
/// up to `UInt64.max`, a real, a `Date` and a `Data` are themselves. A struct is a dictionary, a
/// set a sorted array, an enum its raw value, one with payloads a dictionary with the case's name,
/// a `URL`, a `UUID` and a `Decimal` a string. A dictionary whose keys become strings is
/// a dictionary, any other an array of keys and values in turn. An optional property that is nil is
/// left out. Nil in an array, a set or a dictionary has no form, and such a value is refused.
///
/// Where a type chooses what it becomes, by its own `encode(to:)`, that is what is stored. Of
/// optionals in one another, `.some(nil)` is nil as well. A `URL` relative to another comes back as
/// the absolute one.
///
/// `@unchecked Sendable` as its superclass is: it has constants only, of sendable types.
public final class UbiquityKey<Value: Codable & Sendable>: UbiquityKeys, @unchecked Sendable {
    /// The key in the store.
    public let name: String
    /// What reading gives while there is no value, or none that can be read as `Value`. It is never
    /// stored, and so never wins over what another device stored.
    public let defaultValue: Value

    /// - Parameters:
    ///   - name: Not empty, and at most as long as the store allows: writes under any other name are
    ///     refused, and reading it gives the default.
    ///   - default: See ``defaultValue``.
    public init(_ name: String, default: Value) {
        self.name = name
        defaultValue = `default`
    }
}

extension UbiquityKey where Value: ExpressibleByNilLiteral {
    /// A key that is nil while there is no value.
    ///
    /// - Parameter name: As for ``init(_:default:)``.
    public convenience init(_ name: String) { self.init(name, default: nil) }
}
