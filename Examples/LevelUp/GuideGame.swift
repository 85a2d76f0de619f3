// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The level that a player has reached, kept as Apple's guide tells it: in the preferences, which are
/// right without a server, and in the store, which carries it to the other devices.
///
/// The store keeps the latest write, and the latest level is not always the highest. So the app compares
/// whenever it is told of a change, and writes the higher one again.
@MainActor
final class GuideGame {
    private let store: UbiquitousKeyValueStore
    private let defaults: UserDefaults
    private var observer: (any NSObjectProtocol)?
    /// The number of times that it had to write its level again.
    private(set) var corrections = 0

    nonisolated static let key = "level"

    init(_ store: UbiquitousKeyValueStore, _ defaults: UserDefaults) {
        (self.store, self.defaults) = (store, defaults)
        observer = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: .main
        ) { [weak self] notification in
            let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
            guard keys?.contains(Self.key) == true else { return }
            MainActor.assumeIsolated { self?.storeChanged() }
        }
        store.synchronize()
        // What came while the app did not run.
        storeChanged()
    }

    isolated deinit {
        if let observer { NotificationCenter.default.removeObserver(observer) }
    }

    /// The level that this device knows.
    var level: Int { defaults.integer(forKey: Self.key) }
    /// The level in the store.
    var levelInStore: Int { Int(store.longLong(forKey: Self.key)) }

    func finish(level finished: Int) {
        let best = max(finished, level)
        defaults.set(best, forKey: Self.key)
        store.set(Int64(best), forKey: Self.key)
    }

    private func storeChanged() {
        if levelInStore > level {
            defaults.set(levelInStore, forKey: Self.key)
        } else if levelInStore < level {
            corrections += 1
            store.set(Int64(level), forKey: Self.key)
        }
    }
}
