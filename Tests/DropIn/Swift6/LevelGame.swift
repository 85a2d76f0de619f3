// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A game that keeps the highest level in the app's defaults and in the store, and lets the higher
/// one win when another device wrote a lower one.
@MainActor
final class LevelGame {
    private let store: NSUbiquitousKeyValueStore
    private let defaults: UserDefaults
    private var observer: (any NSObjectProtocol)?

    static let levelKey = "highestLevel"

    init(store: NSUbiquitousKeyValueStore = .default, defaults: UserDefaults = .standard) {
        self.store = store
        self.defaults = defaults
    }

    var level: Int { defaults.integer(forKey: Self.levelKey) }

    func start() {
        observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
            object: store, queue: .main
        ) { [weak self] notification in
            let change = LevelChange(notification)
            MainActor.assumeIsolated { self?.storeDidChange(change) }
        }
        store.synchronize()
    }

    func stop() {
        if let observer { NotificationCenter.default.removeObserver(observer) }
        observer = nil
    }

    func finish(level: Int) {
        guard level > self.level else { return }
        defaults.set(level, forKey: Self.levelKey)
        store.set(Int64(level), forKey: Self.levelKey)
    }

    func storeDidChange(_ change: LevelChange?) {
        guard let change, change.keys.contains(Self.levelKey) else { return }
        switch change.reason {
        case NSUbiquitousKeyValueStoreServerChange, NSUbiquitousKeyValueStoreInitialSyncChange:
            let theirs = Int(store.longLong(forKey: Self.levelKey))
            if theirs > level {
                defaults.set(theirs, forKey: Self.levelKey)
            } else if theirs < level {
                store.set(Int64(level), forKey: Self.levelKey)
            }
        case NSUbiquitousKeyValueStoreAccountChange:
            defaults.set(store.longLong(forKey: Self.levelKey), forKey: Self.levelKey)
        default: break
        }
    }
}

/// The part of a notification that an observer passes on to another isolation.
struct LevelChange: Sendable {
    var reason: Int
    var keys: [String]

    init?(_ notification: Notification) {
        guard let userInfo = notification.userInfo,
            let reason = userInfo[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
            let keys = userInfo[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
        else { return nil }
        self.reason = reason
        self.keys = keys
    }
}
