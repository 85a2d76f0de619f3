// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A store made anew at each use.
class FreshStore {
    func save(_ value: Any, for key: String) {
        let store = NSUbiquitousKeyValueStore()
        store.set(value, forKey: key)
        store.synchronize()
    }

    func load(_ key: String) -> Any? {
        return NSUbiquitousKeyValueStore().object(forKey: key)
    }

    func remove(_ key: String) {
        NSUbiquitousKeyValueStore().removeObject(forKey: key)
    }

    func count(withPrefix prefix: String) -> Int {
        return NSUbiquitousKeyValueStore().dictionaryRepresentation.keys
            .filter { $0.hasPrefix(prefix) }.count
    }
}
