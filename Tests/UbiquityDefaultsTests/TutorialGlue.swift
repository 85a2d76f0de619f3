// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The glue between preferences and store as published guides have it: two observers, two loops.
///
/// The better guides take the one observer away while the other works. Its known bugs are shown in
/// the tests beside it.
///
/// `@unchecked Sendable`: the observers' tokens are set once.
final class TutorialGlue: @unchecked Sendable {
    private let defaults: UserDefaults
    private let store: UbiquitousKeyValueStore
    private let prefix: String
    private var observers: [any NSObjectProtocol] = []

    /// - Parameter prefix: Only keys that begin so; the guides that filter do it like this.
    init(_ defaults: UserDefaults, _ store: UbiquitousKeyValueStore, prefix: String) {
        self.defaults = defaults
        self.store = store
        self.prefix = prefix
    }

    func start() {
        let center = NotificationCenter.default
        observers.append(
            center.addObserver(
                forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
                queue: nil
            ) { [weak self] notification in self?.updateFromCloud(notification) })
        observers.append(
            center.addObserver(
                forName: UserDefaults.didChangeNotification, object: defaults, queue: nil
            ) { [weak self] _ in self?.updateToCloud() })
        updateToCloud()
    }

    func stop() {
        for observer in observers { NotificationCenter.default.removeObserver(observer) }
        observers = []
    }

    /// Posts the notification, which on Apple's systems the preferences post by themselves.
    func defaultsDidChange() {
        NotificationCenter.default.post(name: UserDefaults.didChangeNotification, object: defaults)
    }

    private func updateToCloud() {
        for (key, value) in defaults.dictionaryRepresentation() where key.hasPrefix(prefix) {
            store.set(value, forKey: key)
        }
        store.synchronize()
    }

    private func updateFromCloud(_ notification: Notification) {
        for (key, value) in store.dictionaryRepresentation where key.hasPrefix(prefix) {
            defaults.set(value, forKey: key)
        }
        defaults.synchronize()
        defaultsDidChange()
    }
}
