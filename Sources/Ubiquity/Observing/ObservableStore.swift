// SPDX-License-Identifier: Apache-2.0

public import Observation
internal import Synchronization

/// An observable store for views. Changes of any origin to values read through it are reported by
/// Observation, key by key. Works with SwiftUI, and wherever Swift runs.
///
/// ```swift
/// @State private var settings = ObservableStore()
///
/// var body: some View {
///     Slider(value: $settings[.volume])
/// }
/// ```
///
/// Changes from elsewhere are reported on the main actor, a moment after the store has them.
@MainActor
public final class ObservableStore: Observable {
    /// The observed store.
    public let store: UbiquitousKeyValueStore
    private let registrar = ObservationRegistrar()
    private nonisolated let reading = Mutex<[Task<Void, Never>]>([])

    /// - Parameter store: Nil for the default store.
    public init(_ store: UbiquitousKeyValueStore? = nil) {
        let store = store ?? .default
        self.store = store
        let (changes, statuses) = (store.changes, store.statuses)
        let tasks = [
            Task { [weak self] in
                for await change in changes { self?.notify(change) }
            },
            Task { [weak self] in
                for await _ in statuses { self?.notifyStatus() }
            },
        ]
        reading.withLock { $0 = tasks }
    }

    deinit {
        for task in reading.withLock(\.self) { task.cancel() }
    }

    /// The value of a key, or its default, as ``UbiquitousKeyValueStore/subscript(_:)``.
    public subscript<Value>(key: UbiquityKey<Value>) -> Value {
        get {
            registrar.access(self, keyPath: \.[named: key.name])
            return store[key]
        }
        set {
            registrar.withMutation(of: self, keyPath: \.[named: key.name]) { store[key] = newValue }
        }
    }

    /// The current sync status.
    public var status: UbiquityStatus {
        registrar.access(self, keyPath: \.statusNow)
        return store.status
    }

    private func notify(_ change: UbiquityChange) {
        for key in change.keys { registrar.withMutation(of: self, keyPath: \.[named: key]) {} }
    }

    private func notifyStatus() { registrar.withMutation(of: self, keyPath: \.statusNow) {} }

    /// Represents a key's value in the registrar, which distinguishes key paths.
    private nonisolated subscript(named key: String) -> String { key }
    private nonisolated var statusNow: Bool { true }
}
