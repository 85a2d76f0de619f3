// SPDX-License-Identifier: Apache-2.0

internal import Observation
internal import Synchronization
internal import UbiquityCore

/// Reports changes of a store to Observation, key by key. One for all instances of an open store.
///
/// Changes from elsewhere are reported on the main actor, for views.
///
/// Shared state: `reading`, the tasks that listen, guarded by its mutex: each begins with the first
/// access that it is needed for, before the value is read. The registrar is thread-safe.
final class StoreObservation: Observable, Sendable {
    private let driver: StoreDriver
    private let poster: NotificationPoster
    private let registrar = ObservationRegistrar()
    private let reading = Mutex(Reading())

    private struct Reading {
        var changes: Task<Void, Never>?
        var statuses: Task<Void, Never>?
    }

    init(_ driver: StoreDriver, _ poster: NotificationPoster) {
        (self.driver, self.poster) = (driver, poster)
    }

    deinit {
        let reading = reading.withLock(\.self)
        reading.changes?.cancel()
        reading.statuses?.cancel()
    }

    /// Call before a key's value is read.
    func access(_ key: String) {
        reading.withLock { reading in
            guard reading.changes == nil else { return }
            driver.notifyOwnWrites()
            let changes = UbiquityChanges(poster.changes)
            reading.changes = Task { @MainActor [weak self] in
                for await change in changes { self?.report(change) }
            }
        }
        registrar.access(self, keyPath: \.[named: key])
    }

    /// Call before the status is read.
    func accessStatus() {
        reading.withLock { reading in
            guard reading.statuses == nil else { return }
            let statuses = poster.statuses.stream(newest: 1, first: [driver.status])
            reading.statuses = Task { @MainActor [weak self] in
                for await _ in statuses { self?.reportStatus() }
            }
        }
        registrar.access(self, keyPath: \.statusNow)
    }

    /// Writes a key within `body`.
    func mutate(_ key: String, _ body: () -> Void) {
        registrar.withMutation(of: self, keyPath: \.[named: key], body)
    }

    private func report(_ change: UbiquityChange) { for key in change.keys { mutate(key) {} } }

    private func reportStatus() { registrar.withMutation(of: self, keyPath: \.statusNow) {} }

    /// Represents a key's value in the registrar, which distinguishes key paths.
    private subscript(named key: String) -> String { key }
    private var statusNow: Bool { true }
}
