// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Logging
import Testing
import Ubiquity
import UbiquityCore

/// Defaults that are registered with a store, compared with what `UserDefaults` does.
struct RegisteringTests {
    private let folder: TemporaryFolder
    private let log = LogRecorder()
    private let store: UbiquitousKeyValueStore
    private let number = UbiquityKey("number", default: 1)

    init() throws {
        let log = log
        let local = try LocalStore { $0.logger = log.logger }
        (folder, store) = (local.folder, local.store)
    }

    @Test func `every getter has a registered default, as in UserDefaults`() throws {
        let values: [String: Any] = [
            "number": 5, "real": 0.5, "flag": true, "text": "dark", "list": ["a"],
            "map": ["a": 1], "data": Data([1]), "date": Date(timeIntervalSinceReferenceDate: 7),
        ]
        store.register(defaults: values)
        let defaults = try #require(UserDefaults(suiteName: "\(UUID())"))
        defaults.register(defaults: values)
        #expect(store.longLong(forKey: "number") == Int64(defaults.integer(forKey: "number")))
        #expect(store.double(forKey: "real") == defaults.double(forKey: "real"))
        #expect(store.bool(forKey: "flag") == defaults.bool(forKey: "flag"))
        #expect(store.string(forKey: "text") == defaults.string(forKey: "text"))
        #expect(store.array(forKey: "list") as? [String] == ["a"])
        #expect(store.dictionary(forKey: "map")?["a"] as? Int == 1)
        #expect(store.data(forKey: "data") == defaults.data(forKey: "data"))
        #expect(store.object(forKey: "date") as? Date == Date(timeIntervalSinceReferenceDate: 7))
        let all = Set(store.dictionaryRepresentation.keys)
        #expect(all == Set(values.keys))
        #expect(all.isSubset(of: defaults.dictionaryRepresentation().keys))
    }

    @Test func `a stored value hides it, also one of another type, until it is removed`() {
        store.register(defaults: ["number": 5, "text": "dark"])
        store.set(Date(), forKey: "text")
        #expect(store.string(forKey: "text") == nil)
        #expect(store.dictionaryRepresentation["text"] is Date)
        store.set(0, forKey: "number")
        #expect(store.longLong(forKey: "number") == 0)
        store.removeObject(forKey: "number")
        #expect(store.longLong(forKey: "number") == 5)
        store.removeAll()
        #expect(store.string(forKey: "text") == "dark")
    }

    @Test func `typed keys have it before their own default, and know that none is stored`() throws
    {
        let before = store[number]
        store.register(defaults: ["number": 5])
        #expect(before == 1 && store[number] == 5)
        #expect(try store.value(for: number) == 5)
        #expect(!store.hasValue(for: number))
        try store.update(number) { $0 += 1 }
        #expect(store[number] == 6 && store.hasValue(for: number))
        store.remove(number)
        store.set(Date(), forKey: "number")
        // As with `@AppStorage`: the stored value hides what is registered, and cannot be read.
        #expect(store[number] == 1)
        try store.performBatch { batch in
            batch.removeObject(forKey: "number")
            #expect(batch.object(forKey: "number") as? Int == 5)
        }
        store.increment(forKey: "number")
        #expect(store[number] == 1)
    }

    @Test func `a counter begins with 0, whatever is registered or the key's default`() throws {
        store.register(defaults: ["coins": 100, "lives": 100])
        let coins = UbiquityKey("coins", default: 7, policy: .counter)
        let lives = UbiquityKey<Int?>("lives", policy: .counter)
        let ratio = UbiquityKey("ratio", default: 0.5, policy: .counter)
        #expect(store[coins] == 100 && store[lives] == 100 && store[ratio] == 0.5)
        try store.update(coins) { $0 += 1 }
        try store.update(lives) { $0 = ($0 ?? 5) + 2 }
        try store.update(ratio) { $0 += 0.25 }
        #expect(store.value("coins") == .integer(1) && store[coins] == 1)
        #expect(store.value("lives") == .integer(2) && store.value("ratio") == .real(0.25))
        store.increment(forKey: "coins")
        try store.update(coins) { $0 += 1 }
        #expect(store[coins] == 3)
        store.remove(coins)
        #expect(store[coins] == 100)
        try store.update(coins) { $0 -= 1 }
        #expect(store[coins] == -1)
        // A text is no number to count from.
        let own = UbiquityKey("own", default: 9, policy: .counter)
        store.set("loud", forKey: "own")
        try store.update(own) { $0 += 1 }
        #expect(store[own] == 1)
        // What is no counter goes on from what is shown.
        let names = UbiquityKey("names", default: ["a"], policy: .unionOfArrays)
        try store.update(names) { $0.append("b") }
        #expect(store[names] == ["a", "b"])
        let level = UbiquityKey("level", default: 5, policy: .maximum)
        try store.update(level) { $0 += 1 }
        #expect(store[level] == 6)
    }

    @Test func `it is neither stored nor reported, and ends with the store`() async throws {
        var changes = store.changes.makeAsyncIterator()
        store.register(defaults: ["number": 5])
        #expect(store.values.isEmpty && store.engineStatus.usage == Usage())
        #expect(store.status.pendingKeys.isEmpty)
        store.set("first", forKey: "other")
        #expect(await changes.next()?.keys == ["other"])
        #expect(store.synchronize() == true)
        let same = try UbiquitousKeyValueStore(
            configuration: UbiquityConfiguration(
                identifier: "TEAM.com.example.local", home: folder.path))
        #expect(same.longLong(forKey: "number") == 5)
        store.close()
        let next = try LocalStore(in: folder).store
        #expect(next.object(forKey: "number") == nil)
        #expect(next.string(forKey: "other") == "first")
    }

    @Test func `calls add up, the last value counts, and what is no value is left out`() {
        store.register(defaults: ["a": 1, "b": 1])
        store.register(defaults: ["b": 2, "c": URL(string: "https://a.example")!, "": 1])
        #expect(store.longLong(forKey: "a") == 1 && store.longLong(forKey: "b") == 2)
        #expect(store.object(forKey: "c") == nil)
        #expect(log.lines.count == 2 || log.lines.count == 1, "\(log.lines)")
    }

    private final class Own: UbiquitousKeyValueStore, @unchecked Sendable {}

    private final class Fake: UbiquitousKeyValueStore, @unchecked Sendable {
        override func object(forKey aKey: String) -> Any? { nil }
    }

    @Test func `a subclass that overrides nothing has it, and a double opens no store for it`()
        throws
    {
        let own = try Own(
            configuration: UbiquityConfiguration(
                identifier: "TEAM.com.example.local", home: folder.path))
        own.register(defaults: ["number": 5])
        #expect(own.longLong(forKey: "number") == 5 && own[number] == 5)
        #expect(!own.hasValue(for: number))
        own.set(6, forKey: "number")
        #expect(own.hasValue(for: number))
        let fake = Fake()
        fake.register(defaults: ["number": 5])
        #expect(fake[number] == 1 && fake.longLong(forKey: "number") == 0)
    }
}
