// SPDX-License-Identifier: Apache-2.0

internal import Foundation
public import Ubiquity
internal import UbiquityCore

/// A property that reads and writes an app's preferences, which a mirror keeps equal with a store.
/// <!-- Snippets/Preferences.swift: properties -->
/// ```swift
/// extension UbiquityKeys {
///     static let theme = UbiquityKey("theme", default: "light")
///     static let level = UbiquityKey("level", default: 1, policy: .maximum)
/// }
///
/// let game = try DefaultsMirror(.suite("com.example.game"), keys: [.key(.theme), .key(.level)])
///
/// struct GameSettings {
///     @Mirrored(.theme, in: game) var theme
///     @Mirrored(.level, in: game) var level
/// }
/// ```
///
/// As ``DefaultsMirror/subscript(_:)``. The property does not notify anyone of changes: iterate over
/// ``DefaultsMirror/changes``.
@propertyWrapper
public struct Mirrored<Value: Codable & Sendable>: Sendable {
    /// The key of the property.
    public let key: UbiquityKey<Value>
    private let mirror: DefaultsMirror

    /// - Parameters:
    ///   - key: The key of the property. It should be among those of the mirror; otherwise it is a
    ///     preference of this machine.
    ///   - mirror: The mirror of the preferences, which the property keeps alive.
    public init(_ key: UbiquityKey<Value>, in mirror: DefaultsMirror) {
        (self.key, self.mirror) = (key, mirror)
    }

    /// The value, or the key's default.
    public var wrappedValue: Value {
        get { mirror[key] }
        nonmutating set { mirror[key] = newValue }
    }
}

extension DefaultsMirror {
    /// The preference under a key's name, a registered default included, or else the key's default.
    ///
    /// Values have the forms that `UbiquityKey` describes. A value that cannot be read
    /// gives the default. Setting nil removes the preference. A value that is not a property list is
    /// not written, which is reported in the log and the store's errors.
    public subscript<Value>(key: UbiquityKey<Value>) -> Value {
        get {
            guard let object = defaults.object(forKey: key.name),
                let stored = try? PropertyListValue(object)
            else { return key.defaultValue }
            return (try? TypedValue.decode(stored, as: Value.self)) ?? key.defaultValue
        }
        set {
            do { set(try TypedValue.encode(newValue)?.boxed, forKey: key.name) } catch {
                store.report(UbiquityError(.invalid, error.description(forKey: key.name)))
            }
        }
    }
}
