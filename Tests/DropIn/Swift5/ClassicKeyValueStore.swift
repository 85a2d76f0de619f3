// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// One protocol over the defaults and the store.

protocol KeyValueStore: AnyObject {
    func object(forKey defaultName: String) -> Any?
    func string(forKey defaultName: String) -> String?
    func set(_ value: Any?, forKey defaultName: String)
    func set(_ value: Int, forKey defaultName: String)
    func set(_ value: Bool, forKey defaultName: String)
    func integer(forKey defaultName: String) -> Int
    func bool(forKey defaultName: String) -> Bool
    func removeObject(forKey defaultName: String)
    func synchronize() -> Bool
}

extension UserDefaults: KeyValueStore {}

extension NSUbiquitousKeyValueStore: KeyValueStore {
    func integer(forKey defaultName: String) -> Int {
        return Int(longLong(forKey: defaultName))
    }

    func set(_ value: Int, forKey defaultName: String) {
        set(Int64(value), forKey: defaultName)
    }
}

class Counter {
    var store: KeyValueStore = NSUbiquitousKeyValueStore.default
    let key: String

    init(key: String, store: KeyValueStore? = nil) {
        self.key = key
        if let store = store { self.store = store }
    }

    func increment() {
        store.set(store.integer(forKey: key) + 1, forKey: key)
        _ = store.synchronize()
    }

    var value: Int { return store.integer(forKey: key) }
}
