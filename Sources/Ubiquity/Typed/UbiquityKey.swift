// SPDX-License-Identifier: Apache-2.0

/// The name of a value with its type and its default.
///
/// Declare it in an extension of ``UbiquityKeys`` and use it as `store[.volume]`.
///
/// The stored forms are ones that other languages have too. A string, a Bool, an integer up to
/// `UInt64.max`, a real, a `Date` and a `Data` are stored as themselves. A struct becomes a
/// dictionary, a set a sorted array, an enum its raw value, an enum with payloads a dictionary with
/// the case's name, and a `URL`, a `UUID` or a `Decimal` a string. A dictionary whose keys encode
/// as strings stays a dictionary; any other becomes an array of alternating keys and values. An
/// optional property that is nil is omitted. Nil in an array, a set or a dictionary cannot be
/// stored, and such a value is refused.
///
/// If a type has its own `encode(to:)`, its result is stored. With nested optionals, `.some(nil)`
/// counts as nil too. A relative `URL` is read back as an absolute one.
///
/// `@unchecked Sendable` like its superclass: it only has constants of sendable types.
public final class UbiquityKey<Value: Codable & Sendable>: UbiquityKeys, @unchecked Sendable {
    /// The key in the store.
    public let name: String
    /// The value while none is stored, or none that can be read as `Value`. It is never stored, so
    /// it never wins over another device's value.
    public let defaultValue: Value
    /// The rule for conflicting writes. Each store applies it from the key's first use in a process
    /// on. ``UbiquityAdditions/setConflictPolicy(_:for:)`` replaces it for one store.
    public let policy: ConflictPolicy
    /// Kept, because each access asks.
    let hasPolicy: Bool

    /// - Parameters:
    ///   - name: Not empty, and not longer than the store allows. Writes with an invalid name are
    ///     refused, and reads give the default.
    ///   - default: See ``defaultValue``.
    ///   - policy: See ``policy``.
    public init(_ name: String, default: Value, policy: ConflictPolicy = .latest) {
        self.name = name
        defaultValue = `default`
        self.policy = policy
        hasPolicy = !policy.isLatest
    }
}

extension UbiquityKey where Value: ExpressibleByNilLiteral {
    /// Creates a key that is nil while there is no value.
    ///
    /// - Parameters:
    ///   - name: As for ``init(_:default:policy:)``.
    ///   - policy: As for ``init(_:default:policy:)``.
    public convenience init(_ name: String, policy: ConflictPolicy = .latest) {
        self.init(name, default: nil, policy: policy)
    }
}

/// A namespace for an app's keys, so that `store[.volume]` finds them.
///
/// It has no state, and no instances except keys. ``UbiquityKey`` inherits from it because an
/// implicit member such as `.volume` is also looked up in the superclasses, while a generic type
/// cannot have static constants of its own. `@unchecked Sendable` because it is not final: no other
/// module can inherit from it, and its subclasses only have constants.
public class UbiquityKeys: @unchecked Sendable {
    init() {}
}
