// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The level game with values that anybody may touch from any thread.
class ClassicLevelGame {
    let defaults: UserDefaults
    let store: NSUbiquitousKeyValueStore
    var observer: Any?
    var messages = [String]()

    init(defaults: UserDefaults, store: NSUbiquitousKeyValueStore = .default) {
        self.defaults = defaults
        self.store = store
    }

    deinit {
        if let observer = observer { NotificationCenter.default.removeObserver(observer) }
    }

    func start() {
        observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { [weak self] notification in
            guard let strongSelf = self else { return }
            strongSelf.compare(notification)
        }
    }

    func reach(_ level: Int) {
        defaults.set(level, forKey: "classic.level")
        store.set(level, forKey: "classic.level")
        store.synchronize()
    }

    func compare(_ notification: Notification) {
        let changed =
            notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
        for key in changed where key == "classic.level" {
            let mine = defaults.integer(forKey: key)
            let theirs = store.object(forKey: key) as? Int ?? 0
            if mine > theirs {
                messages.append("\(mine) is more than \(theirs)")
                store.set(mine, forKey: key)
            } else {
                defaults.set(theirs, forKey: key)
            }
        }
    }
}
