// SPDX-License-Identifier: Apache-2.0

// snippet.imports
import Foundation
import Ubiquity

let store = NSUbiquitousKeyValueStore.default
// snippet.end

// snippet.selector
final class SettingsScreen {
    private var observer: (any NSObjectProtocol)?

    func appear() {
        // Was: addObserver(self, selector: #selector(storeDidChange), name: …, object: store)
        observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: .main
        ) { notification in
            let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int
            let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
            print("reason \(reason ?? -1), keys \(keys ?? [])")
        }
    }

    func disappear() {
        if let observer { NotificationCenter.default.removeObserver(observer) }
        observer = nil
    }
}
// snippet.end

// snippet.publisher
func followChanges() async {
    // Was: for await notification in NotificationCenter.default.notifications(named: …)
    for await change in store.changes where change.origin != .own {
        print("\(change.origin): \(change.keys)")
    }
}
// snippet.end

// snippet.containers
func isDoneFlags() -> [Bool] {
    // Not `store.object(forKey: "done") as? [Any]`: on Linux, that cast takes a Bool out of its box.
    let values = store.array(forKey: "done") ?? []
    return values.map { $0 as? Int == 1 }
}
// snippet.end

// snippet.double
final class FakeStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    private let lock = NSLock()
    private var values: [String: Any] = [:]

    override func object(forKey aKey: String) -> Any? { lock.withLock { values[aKey] } }
    override func set(_ anObject: Any?, forKey aKey: String) {
        lock.withLock { values[aKey] = anObject }
    }
    override func removeObject(forKey aKey: String) { lock.withLock { values[aKey] = nil } }
}
// snippet.end

// snippet.hide
let fake = FakeStore()
fake.set([true], forKey: "done")
print(isDoneFlags(), fake.bool(forKey: "done"))
SettingsScreen().appear()
