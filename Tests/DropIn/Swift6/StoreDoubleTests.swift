// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// Subclasses that apps write for their tests.
struct StoreDoubleTests {
    init() { TestHome.use() }

    @Test func `a double need not call the initialiser of the class`() throws {
        let store = LoggingStore()
        store.set("here", forKey: "logged")
        #expect(store.string(forKey: "logged") == "here" && store.log == ["logged"])
        #expect(NSUbiquitousKeyValueStore.default.string(forKey: "logged") == "here")
    }

    @Test func `a subclass inherits the initialiser of a further store`() throws {
        let home = NSTemporaryDirectory() + "ubiquity-subclass-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: home) }
        let store = try AppStore(
            configuration: UbiquityConfiguration(identifier: "TEAM.example", home: home))
        store.set(1, forKey: "subclass")
        #expect(store.longLong(forKey: "subclass") == 1 && store.name == "app")
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: "subclass") == nil)
    }

    @Test func `a file without imports can use what another file imports for the module`() {
        let preferences = Preferences()
        preferences.name = "Ada"
        #expect(Preferences().name == "Ada" && preferences.lastChange == .distantPast)
    }

    @Test func `typed setters and getters go through the three methods of a double`() {
        let double = DictionaryStore()
        let store: NSUbiquitousKeyValueStore = double
        store.set("12.5", forKey: "string")
        store.set(Int64(7), forKey: "integer")
        store.set(true, forKey: "bool")
        store.set(2.67, forKey: "real")
        store.set(Data([1]), forKey: "data")
        store.set([1, true], forKey: "array")
        store.set(["a": true], forKey: "dictionary")
        #expect(double.keys.count == 7)
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: "real") == nil)
        #expect(store.string(forKey: "integer") == "7" && store.string(forKey: "bool") == "1")
        #expect(store.double(forKey: "string") == 12.5 && store.longLong(forKey: "real") == 2)
        #expect(store.bool(forKey: "integer") && store.double(forKey: "bool") == 1)
        #expect(store.data(forKey: "data") == Data([1]) && store.data(forKey: "string") == nil)
        #expect(store.array(forKey: "array")?.count == 2)
        #expect(store.array(forKey: "dictionary") == nil)
        #expect(store.dictionary(forKey: "dictionary")?["a"] as? Bool == true)
        #expect(store.string(forKey: "none") == nil && store.longLong(forKey: "none") == 0)
        #expect(store.value(forKey: "real") as? Double == 2.67)
    }

    @Test func `the elements that a double's values are made of are boxed as the store's`() {
        for store in [DictionaryStore(), NSUbiquitousKeyValueStore.default] {
            store.set([1, true], forKey: "boxed.array")
            store.set(["a": true], forKey: "boxed.dictionary")
            #expect(store.array(forKey: "boxed.array") as? [NSNumber] == [1, true])
            #expect(store.array(forKey: "boxed.array")?[1] as? Int == 1)
            #expect(store.dictionary(forKey: "boxed.dictionary")?["a"] as? Double == 1)
        }
    }

    @Test func `a number that a typed setter hands to a double casts to every number`() {
        let store = DictionaryStore()
        let key = "number"
        store.set(5, forKey: key)
        #expect(store.object(forKey: key) as? Int64 == 5)
        store.set(Int64(6), forKey: key)
        #expect(store.object(forKey: key) as? Int == 6)
        store.set(7.0, forKey: key)
        #expect(store.object(forKey: key) as? Int == 7)
        store.set(true, forKey: key)
        #expect(store.object(forKey: key) as? NSNumber == 1)
        store.set("text", forKey: key)
        #expect(store.object(forKey: key) as? String == "text")
        store.set(Data([1]), forKey: key)
        #expect(store.object(forKey: key) as? Data == Data([1]))
    }

    @Test func `a double whose setter removes is not called without end`() {
        let store = DictionaryStore()
        store.set("text", forKey: "a")
        store.set(nil as String?, forKey: "a")
        store.setValue(nil, forKey: "b")
        store.removeObject(forKey: "c")
        #expect(store.removedKeys == ["a", "b", "c"])
        let counting = CountingStore()
        counting.set("text", forKey: "counting")
        counting.set(nil as Data?, forKey: "counting")
        #expect(counting.writes == 2)
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: "counting") == nil)
    }

    @Test func `a subclass that calls super writes to the default store`() {
        let store = CountingStore()
        store.set(5, forKey: "super.count")
        store.set(true, forKey: "super.bool")
        #expect(store.writes == 2)
        #expect(NSUbiquitousKeyValueStore.default.longLong(forKey: "super.count") == 5)
        #expect(store.dictionaryRepresentation["super.bool"] as? Bool == true)
    }

    @Test func `a double that overrides everything is called for everything`() {
        let store: NSUbiquitousKeyValueStore = RecordingStore()
        let key = "key"
        store.set("text", forKey: key)
        #expect(store.string(forKey: key) == "text")
        store.set(Data(), forKey: key)
        store.set([1], forKey: key)
        store.set(["a": 1], forKey: key)
        store.set(Int64(1), forKey: key)
        store.set(1.5, forKey: key)
        store.set(true, forKey: key)
        store.set(5, forKey: key)
        store.set(Date(), forKey: key)
        store.setValue(1, forKey: key)
        #expect(store.dictionaryRepresentation.count == 1)
        store.removeObject(forKey: key)
        #expect(store.value(forKey: key) == nil && store.synchronize())
        (store as? RecordingStore)?.isAvailable = false
        #expect(!store.synchronize())
        #expect(
            (store as? RecordingStore)?.calls == [
                "String?", "Data?", "[Any]?", "[String: Any]?", "Int64", "Double", "Bool", "Any?",
                "Any?", "setValue", "remove", "synchronize", "synchronize",
            ])
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: key) == nil)
    }

    @Test func `a subclass has a default of its own`() {
        #expect(RecordingStore.default is RecordingStore)
        #expect(RecordingStore.default === RecordingStore.default)
        #expect(!(NSUbiquitousKeyValueStore.default is RecordingStore))
        PrefixedStore.default.set(5, forKey: "level")
        let store = NSUbiquitousKeyValueStore.default
        #expect(store.longLong(forKey: "prefixed.level") == 5)
    }
}

#endif
