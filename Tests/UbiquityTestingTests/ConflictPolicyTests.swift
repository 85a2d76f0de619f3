// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import Ubiquity
import UbiquityTesting

@Suite("A conflict policy")
struct ConflictPolicyTests {
    private let two = TwoDevices()

    /// Both devices' apps declare it, then the laptop is without a network while both write.
    private func apart(
        _ policy: ConflictPolicy, _ first: (UbiquitousKeyValueStore) -> Void,
        _ second: (UbiquitousKeyValueStore) -> Void
    ) {
        for store in [two.a, two.b] { store.setConflictPolicy(policy, forKey: "k") }
        two.laptop.goOffline()
        first(two.a)
        two.cloud.advance(by: .seconds(60))
        second(two.b)
        two.cloud.advance(by: .seconds(60))
        two.laptop.goOnline()
        two.cloud.settle()
    }

    @Test func `of the maximum keeps level 13 when level 1 is written later`() {
        apart(.maximum) {
            $0.set(13, forKey: "k")
        } _: {
            $0.set(1, forKey: "k")
        }
        #expect(two.a.longLong(forKey: "k") == 13)
        #expect(two.b.longLong(forKey: "k") == 13)
        #expect(two.phone.notifications.isEmpty)
        #expect(two.laptop.notifications.map(\.news) == [News(reason: 0, keys: ["k"])])
        #expect(two.onServer as? [String: Int] == ["k": 13])
    }

    @Test func `of the minimum keeps the best time`() {
        apart(.minimum) {
            $0.set(61.5, forKey: "k")
        } _: {
            $0.set(70.25, forKey: "k")
        }
        #expect(two.a.double(forKey: "k") == 61.5)
        #expect(two.b.double(forKey: "k") == 61.5)
    }

    @Test func `of a counter adds up what both counted, by set and by increment`() {
        apart(.counter) {
            $0.set(3, forKey: "k")
            $0.increment(forKey: "k")
        } _: {
            $0.increment(forKey: "k", by: 10)
            $0.set($0.longLong(forKey: "k") + 1, forKey: "k")
        }
        #expect(two.a.longLong(forKey: "k") == 15)
        #expect(two.b.longLong(forKey: "k") == 15)
    }

    @Test func `of a union of arrays has all bookmarks, but for the one that was removed`() {
        let old: [[String: String]] = [["url": "a"], ["url": "b"]]
        for store in [two.a, two.b] { store.setConflictPolicy(.unionOfArrays, forKey: "k") }
        two.a.set(old, forKey: "k")
        two.cloud.settle()
        apart(.unionOfArrays) {
            $0.set(old + [["url": "c"]], forKey: "k")
        } _: {
            $0.set([["url": "b"], ["url": "d"]], forKey: "k")
        }
        let expected = [["url": "b"], ["url": "c"], ["url": "d"]]
        #expect(two.a.array(forKey: "k") as? [[String: String]] == expected)
        #expect(two.b.array(forKey: "k") as? [[String: String]] == expected)
    }

    @Test func `of a union of dictionaries lets one device write the title and one the text`() {
        for store in [two.a, two.b] { store.setConflictPolicy(.unionOfDictionaries, forKey: "k") }
        two.a.set(["title": "t", "text": "x"], forKey: "k")
        two.cloud.settle()
        apart(.unionOfDictionaries) {
            $0.set(["title": "T", "text": "x"], forKey: "k")
        } _: {
            $0.set(["title": "t", "text": "X"], forKey: "k")
        }
        let expected = ["title": "T", "text": "X"]
        #expect(two.a.dictionary(forKey: "k") as? [String: String] == expected)
        #expect(two.b.dictionary(forKey: "k") as? [String: String] == expected)
    }

    @Test func `of a union keeps what comes in while an app changes what it has read`() throws {
        let key = UbiquityKey<[String: Int]>("k", default: [:])
        for store in [two.a, two.b] { store.setConflictPolicy(.unionOfDictionaries, for: key) }
        two.a[key] = ["a": 1]
        two.cloud.settle()
        try two.a.update(key) { entries in
            two.b[key] = ["a": 1, "b": 2]
            two.cloud.settle()
            entries["c"] = 3
        }
        two.cloud.settle()
        #expect(two.a[key] == ["a": 1, "b": 2, "c": 3])
        #expect(two.b[key] == ["a": 1, "b": 2, "c": 3])
        struct Mistake: Error {}
        #expect(throws: Mistake.self) {
            try two.a.update(key) {
                $0["d"] = 4
                throw Mistake()
            }
        }
        #expect(two.a[key].count == 3)
    }

    @Test func `of a counter adds up what each device counts, without their defaults`() throws {
        let key = UbiquityKey("k", default: 5, policy: .counter)
        for store in [two.a, two.b] {
            store.register(defaults: ["k": 100])
            try store.update(key) { $0 += 1 }
        }
        two.cloud.settle()
        #expect(two.a[key] == 2 && two.b[key] == 2)
    }

    @Test func `of the app's own is given both values in their order, with their times`() {
        let times = Mutex<[TimeInterval]>([])
        let policy = ConflictPolicy.custom { earlier, later in
            times.withLock { $0.append(later.date.timeIntervalSince(earlier.date)) }
            return "\(earlier.value) and \(later.value)"
        }
        apart(policy) {
            $0.set("first", forKey: "k")
        } _: {
            $0.set("second", forKey: "k")
        }
        #expect(two.a.string(forKey: "k") == "first and second")
        #expect(two.b.string(forKey: "k") == "first and second")
        #expect(times.withLock { times in !times.isEmpty && times.allSatisfy { abs($0 - 60) < 1 } })
    }

    @Test func `of the app's own that gives no property list leaves the later value`() {
        let policy = ConflictPolicy.custom { _, _ in URL(string: "https://example.com")! }
        apart(policy) {
            $0.set("first", forKey: "k")
        } _: {
            $0.set("second", forKey: "k")
        }
        #expect(two.a.string(forKey: "k") == "second")
    }

    @Test func `that cannot merge a value is passed over, and says so`() async {
        let errors = two.a.errors
        two.a.setConflictPolicy(.maximum, forKey: "k")
        two.a.set(["a": 1], forKey: "k")
        await two.cloud.settle()
        #expect(two.b.dictionary(forKey: "k") as? [String: Int] == ["a": 1])
        let error = await errors.first { _ in true }
        #expect(error?.description.contains("cannot merge") == true)
        #expect(error?.code == .invalid)
    }

    @Test func `is read and replaced by an app that knows nothing of it`() {
        two.a.setConflictPolicy(.counter, forKey: "k")
        two.a.set(5, forKey: "k")
        two.cloud.settle()
        #expect(two.b.dictionaryRepresentation as? [String: Int] == ["k": 5])
        two.b.set(100, forKey: "k")
        two.cloud.settle()
        #expect(two.a.longLong(forKey: "k") == 100)
        two.a.increment(forKey: "k")
        two.cloud.settle()
        #expect(two.b.longLong(forKey: "k") == 101)
        two.b.removeObject(forKey: "k")
        two.cloud.settle()
        #expect(two.a.object(forKey: "k") == nil)
        #expect(two.onServer.isEmpty)
    }

    @Test func `holds in a batch, together with keys that have none`() throws {
        two.a.setConflictPolicy(.counter, forKey: "k")
        two.a.set(5, forKey: "k")
        try two.a.performBatch { batch in
            try batch.set(7, forKey: "k")
            try batch.set("x", forKey: "plain")
        }
        two.cloud.settle()
        two.b.increment(forKey: "k")
        two.cloud.settle()
        #expect(two.b.dictionaryRepresentation.count == 2)
        #expect(two.a.longLong(forKey: "k") == 8)
        #expect(two.laptop.notifications.map(\.news) == [News(reason: 0, keys: ["k", "plain"])])
    }

    @Test func `keeps its value over a restart, a lost answer and a restored server`() {
        for store in [two.a, two.b] { store.setConflictPolicy(.counter, forKey: "k") }
        two.a.increment(forKey: "k")
        two.cloud.settle()
        let backup = two.cloud.server.backUp()
        two.phone.network.lostAnswers = 1
        two.a.increment(forKey: "k")
        two.b.increment(forKey: "k")
        two.cloud.advance(by: .seconds(30))
        two.phone.network.lostAnswers = 0
        two.cloud.settle()
        two.cloud.server.restore(backup)
        two.cloud.settle()
        two.laptop.restart()
        let again = two.laptop.openStore(TwoDevices.identifier)
        again.increment(forKey: "k")
        two.cloud.settle()
        #expect(two.a.longLong(forKey: "k") == 4)
        #expect(again.longLong(forKey: "k") == 4)
        #expect(two.onServer as? [String: Int] == ["k": 4])
    }

    @Test func `joins what a fresh install wrote with what the account has`() {
        two.a.setConflictPolicy(.maximum, forKey: "k")
        two.a.set(13, forKey: "k")
        two.cloud.settle()
        let tablet = two.cloud.newDevice("tablet", isSignedIn: false)
        let c = tablet.openStore(TwoDevices.identifier)
        c.setConflictPolicy(.maximum, forKey: "k")
        c.set(20, forKey: "k")
        two.cloud.settle()
        tablet.signIn(to: two.cloud.account)
        two.cloud.settle()
        #expect(two.a.longLong(forKey: "k") == 20)
        #expect(c.longLong(forKey: "k") == 20)
    }
}
