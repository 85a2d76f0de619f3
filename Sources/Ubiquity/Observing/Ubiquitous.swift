// SPDX-License-Identifier: Apache-2.0

/// A property that is a key of a store.
///
/// ```swift
/// struct Player {
///     @Ubiquitous(.volume) var volume
/// }
/// ```
///
/// Reading and writing it is reading and writing the store; nothing is kept beside it. It tells
/// nobody of changes by itself: read its ``values``, or use an ``ObservableStore`` where a view shall
/// follow.
@propertyWrapper
public struct Ubiquitous<Value: Codable & Sendable>: Sendable {
    /// The key that the property is.
    public let key: UbiquityKey<Value>
    /// Nil: the default store, which is not opened before the property is used.
    private let own: UbiquitousKeyValueStore?

    /// - Parameters:
    ///   - key: The key that the property is.
    ///   - store: Nil: the default store, as it is when the property is used first.
    public init(_ key: UbiquityKey<Value>, store: UbiquitousKeyValueStore? = nil) {
        self.key = key
        own = store
    }

    private var store: UbiquitousKeyValueStore { own ?? .default }

    /// The value, or the key's default.
    public var wrappedValue: Value {
        get { store[key] }
        nonmutating set { store[key] = newValue }
    }

    /// The wrapper itself: `$volume.values`, `$volume.remove()`.
    public var projectedValue: Self { self }

    /// The value now, and whenever it is another one.
    public var values: UbiquityValues<Value> { store.values(for: key) }

    /// Whether something is stored, and it is not the default that is read.
    public var hasValue: Bool { store.hasValue(for: key) }

    /// Removes the key, so that it reads as its default again.
    public func remove() { store.remove(key) }
}
