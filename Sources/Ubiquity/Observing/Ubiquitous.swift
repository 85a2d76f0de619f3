// SPDX-License-Identifier: Apache-2.0

/// A property that reads and writes a key of a store.
/// <!-- Snippets/Observing.swift: wrapper -->
/// ```swift
/// struct Player {
///     @Ubiquitous(.volume) var volume
///     @Ubiquitous(.nickname) var nickname
/// }
///
/// func mute(_ player: Player) {
///     player.volume = 0
///     player.$nickname.remove()
/// }
/// ```
///
/// Nothing is kept beside the store. A view that reads the property is updated when the value changes,
/// wherever the change came from: reads are reported to Observation, and changes from elsewhere on the
/// main actor, a moment after the store has them. In an `@Observable` class, which cannot have other
/// property wrappers, put `@ObservationIgnored` before it.
///
/// Elsewhere, iterate over its ``values``.
@propertyWrapper
public struct Ubiquitous<Value: Codable & Sendable>: Sendable {
    /// The key of the property.
    public let key: UbiquityKey<Value>
    /// Nil for the default store, which is not opened before the property is used.
    private let own: UbiquitousKeyValueStore?

    /// - Parameters:
    ///   - key: The key of the property.
    ///   - store: Nil for the default store at the time of the property's first use.
    public init(_ key: UbiquityKey<Value>, store: UbiquitousKeyValueStore? = nil) {
        self.key = key
        own = store
    }

    private var store: UbiquitousKeyValueStore { own ?? .default }

    /// The value, or the key's default.
    public var wrappedValue: Value {
        get {
            let store = store
            if store.hasBacking { store.backing.observation.access(key.name) }
            return store[key]
        }
        nonmutating set {
            let store = store
            guard store.hasBacking else { return store[key] = newValue }
            store.backing.observation.mutate(key.name) { store[key] = newValue }
        }
    }

    /// The wrapper itself: `$volume.values`, `$volume.remove()`.
    public var projectedValue: Self { self }

    /// The current value, and each new value when it changes.
    public var values: UbiquityValues<Value> { store.values(for: key) }

    /// Whether a value is stored, so that the default does not apply.
    public var hasValue: Bool { store.hasValue(for: key) }

    /// Removes the key, so that it has its default value again.
    public func remove() { store.remove(key) }
}
