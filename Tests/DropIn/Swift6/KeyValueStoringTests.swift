// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// The class behind protocols of an app's own.
struct KeyValueStoringTests {
    init() { TestHome.use() }

    @Test func `values move from the defaults to the store`() throws {
        let defaults = try #require(UserDefaults(suiteName: "migration-" + UUID().uuidString))
        let store = DictionaryStore()
        defaults.set(13, forKey: "level")
        defaults.set("Ada", forKey: "greeting.name")
        defaults.set("old", forKey: "kept")
        store.set("new", forKey: "kept")
        Migration(from: defaults, to: store).move(["level", "greeting.name", "kept", "none"])
        #expect(store.longLong(forKey: "level") == 13)
        #expect(greeting(of: store) == "Hello, Ada!")
        #expect(store.string(forKey: "kept") == "new")
        #expect(store.keys == ["level", "greeting.name", "kept"])
        #expect(defaults.object(forKey: "level") == nil)
    }

    @Test func `typed setters behind a protocol reach the store`() {
        let store: any TypedSetting = NSUbiquitousKeyValueStore.default
        store.set("text" as String?, forKey: "typed.string")
        store.set(Data([1]) as Data?, forKey: "typed.data")
        store.set([1] as [Any]?, forKey: "typed.array")
        store.set(["a": 1] as [String: Any]?, forKey: "typed.dictionary")
        store.set(Int64(5), forKey: "typed.integer")
        store.set(2.5, forKey: "typed.real")
        store.set(true, forKey: "typed.bool")
        let all = store.dictionaryRepresentation
        #expect(all["typed.string"] as? String == "text")
        #expect(all["typed.data"] as? Data == Data([1]))
        #expect(all["typed.array"] as? [Int] == [1])
        #expect(all["typed.dictionary"] as? [String: Int] == ["a": 1])
        #expect(all["typed.integer"] as? Int64 == 5)
        #expect(all["typed.real"] as? Double == 2.5)
        #expect(all["typed.bool"] as? Bool == true)
        store.set(nil as String?, forKey: "typed.string")
        #expect(store.dictionaryRepresentation["typed.string"] == nil)
    }

    @Test func `default is the same object behind a protocol`() {
        func provided(_ type: (some DefaultProviding).Type) -> NSUbiquitousKeyValueStore {
            type.default
        }
        #expect(provided(NSUbiquitousKeyValueStore.self) === NSUbiquitousKeyValueStore.default)
    }

    @Test func `key-value coding behind a protocol reaches the store`() {
        let store: any KeyValueCoding = NSUbiquitousKeyValueStore.default
        store.setValue(3, forKey: "coding.number")
        #expect(store.value(forKey: "coding.number") as? Int == 3)
    }

    @Test func `an app's own requirement is met by its extension`() {
        let store: any ProgressStorage = DictionaryStore()
        store.saveProgress(["chapter": 0.5])
        store.set(Data([9]), forKey: "state")
        #expect(store.data(forKey: "state") == Data([9]))
        let progress = (store as? NSUbiquitousKeyValueStore)?.dictionary(forKey: "progress")
        #expect(progress as? [String: Double] == ["chapter": 0.5])
    }

    @MainActor
    @Test func `a model of the main actor keeps its notes in the store`() {
        let model = NotesModel()
        model.save("milk", as: "shopping")
        #expect(model.notes["shopping"] == nil)
        #expect(model.notes["note.shopping"] == "milk")
    }
}

#endif
