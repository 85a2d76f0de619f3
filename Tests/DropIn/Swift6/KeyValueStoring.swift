// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// Protocols of an app's own, to which the class conforms as it is.

protocol KeyValueStoring: AnyObject {
    func object(forKey aKey: String) -> Any?
    func string(forKey key: String) -> String?
    func bool(forKey defaultName: String) -> Bool
    func double(forKey key: String) -> Double
    func data(forKey key: String) -> Data?
    func array(forKey: String) -> [Any]?
    func dictionary(forKey: String) -> [String: Any]?
    func set(_ value: Any?, forKey: String)
    func removeObject(forKey defaultName: String)
    @discardableResult func synchronize() -> Bool
}

extension NSUbiquitousKeyValueStore: KeyValueStoring {}
extension UserDefaults: KeyValueStoring {}

protocol TypedSetting {
    func longLong(forKey aKey: String) -> Int64
    func set(_ value: String?, forKey key: String)
    func set(_ value: Data?, forKey key: String)
    func set(_ value: [Any]?, forKey key: String)
    func set(_ value: [String: Any]?, forKey key: String)
    func set(_ value: Int64, forKey key: String)
    func set(_ value: Double, forKey key: String)
    func set(_ value: Bool, forKey key: String)
    var dictionaryRepresentation: [String: Any] { get }
    func synchronize() -> Bool
}

extension NSUbiquitousKeyValueStore: TypedSetting {}

protocol DefaultProviding {
    static var `default`: NSUbiquitousKeyValueStore { get }
    static var didChangeExternallyNotification: NSNotification.Name { get }
}

extension NSUbiquitousKeyValueStore: DefaultProviding {}

/// With a name of its own, and a body for it.
protocol ProgressStorage {
    func data(forKey key: String) -> Data?
    func set(_ data: Data?, forKey key: String)
    func saveProgress(_ progress: [String: Double])
}

extension NSUbiquitousKeyValueStore: ProgressStorage {
    func saveProgress(_ progress: [String: Double]) { set(progress, forKey: "progress") }
}

protocol KeyValueCoding {
    func value(forKey key: String) -> Any?
    func setValue(_ value: Any?, forKey key: String)
}

extension NSUbiquitousKeyValueStore: KeyValueCoding {}

/// Of the main actor, as view models are.
@MainActor
protocol MainActorStoring: AnyObject {
    func object(forKey key: String) -> Any?
    func set(_ value: Any?, forKey key: String)
    var dictionaryRepresentation: [String: Any] { get }
    @discardableResult func synchronize() -> Bool
}

extension NSUbiquitousKeyValueStore: MainActorStoring {}

@MainActor
final class NotesModel {
    private let store: any MainActorStoring

    init(store: any MainActorStoring = NSUbiquitousKeyValueStore.default) { self.store = store }

    func save(_ note: String, as name: String) {
        store.set(note, forKey: "note." + name)
        store.synchronize()
    }

    var notes: [String: String] {
        store.dictionaryRepresentation.filter { $0.key.hasPrefix("note.") }
            .compactMapValues { $0 as? String }
    }
}

/// Takes whatever keeps values.
struct Migration {
    let old: any KeyValueStoring
    let new: any KeyValueStoring

    init(
        from old: any KeyValueStoring = UserDefaults.standard,
        to new: any KeyValueStoring = NSUbiquitousKeyValueStore.default
    ) {
        self.old = old
        self.new = new
    }

    func move(_ keys: [String]) {
        for key in keys {
            guard new.object(forKey: key) == nil, let value = old.object(forKey: key) else {
                continue
            }
            new.set(value, forKey: key)
            old.removeObject(forKey: key)
        }
        new.synchronize()
    }
}

func greeting<Store: KeyValueStoring>(of store: Store) -> String {
    "Hello, \(store.string(forKey: "greeting.name") ?? "you")!"
}
