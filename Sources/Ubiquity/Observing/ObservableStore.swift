// SPDX-License-Identifier: Apache-2.0

public import Observation

/// An observable store for views. Changes of any origin to values read through it are reported by
/// Observation, key by key. Works with SwiftUI, and wherever Swift runs.
/// <!-- Snippets/Observing.swift: observation -->
/// ```swift
/// @MainActor
/// func draw(_ settings: ObservableStore) {
///     withObservationTracking {
///         print("volume: \(settings[.volume]), \(settings.status.connection)")
///     } onChange: {
///         Task { @MainActor in draw(settings) }
///     }
/// }
/// ```
///
/// Changes from elsewhere are reported on the main actor, a moment after the store has them.
@MainActor
public final class ObservableStore: Observable {
    /// The observed store.
    public let store: UbiquitousKeyValueStore

    /// - Parameter store: Nil for the default store.
    public init(_ store: UbiquitousKeyValueStore? = nil) { self.store = store ?? .default }

    private var observation: StoreObservation { store.backing.observation }

    /// The value of a key, or its default, as ``UbiquitousKeyValueStore/subscript(_:)``.
    public subscript<Value>(key: UbiquityKey<Value>) -> Value {
        get {
            observation.access(key.name)
            return store[key]
        }
        set { observation.mutate(key.name) { store[key] = newValue } }
    }

    /// The current sync status.
    public var status: UbiquityStatus {
        observation.accessStatus()
        return store.status
    }
}
