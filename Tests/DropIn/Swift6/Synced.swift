// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A property that lives in the store.
@propertyWrapper
struct Synced<Value> {
    let key: String
    let defaultValue: Value
    var store = NSUbiquitousKeyValueStore.default

    init(wrappedValue: Value, _ key: String, store: NSUbiquitousKeyValueStore = .default) {
        self.key = key
        defaultValue = wrappedValue
        self.store = store
    }

    var wrappedValue: Value {
        get { store.object(forKey: key) as? Value ?? defaultValue }
        nonmutating set {
            if let optional = newValue as? any Emptyable, optional.isEmpty {
                store.removeObject(forKey: key)
            } else {
                store.set(newValue, forKey: key)
            }
        }
    }

    var projectedValue: Bool { store.object(forKey: key) != nil }
}

extension Synced where Value: ExpressibleByNilLiteral {
    init(_ key: String, store: NSUbiquitousKeyValueStore = .default) {
        self.init(wrappedValue: nil, key, store: store)
    }
}

private protocol Emptyable {
    var isEmpty: Bool { get }
}

extension Optional: Emptyable {
    fileprivate var isEmpty: Bool { self == nil }
}

/// A property of a Codable type, as data.
@propertyWrapper
struct SyncedModel<Model: Codable> {
    let key: String
    let defaultValue: Model
    private let store: NSUbiquitousKeyValueStore

    init(wrappedValue: Model, _ key: String, store: NSUbiquitousKeyValueStore = .default) {
        self.key = key
        defaultValue = wrappedValue
        self.store = store
    }

    var wrappedValue: Model {
        get {
            store.data(forKey: key).flatMap { try? JSONDecoder().decode(Model.self, from: $0) }
                ?? defaultValue
        }
        nonmutating set { store.set(try? JSONEncoder().encode(newValue), forKey: key) }
    }
}

struct Player: Codable, Equatable {
    var name: String
    var scores: [Int]
    var joined: Date
}

/// An app's declarations with the two wrappers.
struct Profile {
    @Synced("profile.level") var level = 1
    @Synced("profile.name") var name = "Nobody"
    @Synced("profile.ratio") var ratio = 0.5
    @Synced("profile.isNew") var isNew = true
    @Synced("profile.tags") var tags: [String] = []
    @Synced("profile.birthday") var birthday: Date?
    @SyncedModel("profile.player") var player = Player(name: "", scores: [], joined: .distantPast)
}
