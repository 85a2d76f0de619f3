// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import Ubiquity
import UbiquityTesting

@Suite("A store that is full")
struct FullStoreTests {
    private let two = TwoDevices()
    private let quota = NSUbiquitousKeyValueStoreQuotaViolationChange

    @Test func `refuses a write at once, keeps the old value and tells the reason`() {
        two.a.set("old", forKey: "k")
        two.cloud.settle()
        two.a.set(Data(count: 1_048_577), forKey: "k")
        #expect(two.a.string(forKey: "k") == "old")
        two.cloud.settle()
        #expect(two.phone.notifications.map(\.news) == [News(reason: quota, keys: ["k"])])
        #expect(two.b.string(forKey: "k") == "old")
    }

    /// The app rewrites everything in its handler, of which the store takes a part only: at first
    /// many keys come, and from then on it hears of its own refused writes alone.
    @Test func `tells of refused writes a few times a minute, whatever a handler repeats`() {
        let store = two.a
        let keys = (0..<1_463).map { "bookmark \($0)" }
        let writes = Counter()
        let observer = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { _ in
            for key in keys { store.set(true, forKey: key) }
            writes.add(keys.count)
        }
        two.b.set("from elsewhere", forKey: "first")
        two.cloud.advance(by: .seconds(30))
        let refusals = two.phone.notifications.filter { $0.reason == quota }
        #expect((5...20).contains(refusals.count))
        #expect(writes.count == two.phone.notifications.count * keys.count)
        // What was refused meanwhile is told together.
        let refused = keys.count + 1 - 1_024
        #expect(refusals.last?.changedKeys.count == refused)
        #expect(store.status.keys == 1_024)
        // And what comes from elsewhere is told as ever.
        two.phone.forgetNotifications()
        two.b.set("again", forKey: "first")
        two.cloud.advance(by: .seconds(1))
        #expect(two.phone.notifications.contains { $0.changedKeys == ["first"] })
        NotificationCenter.default.removeObserver(observer)
    }

    @Test func `refuses what two devices filled only together, and keeps it for the app`() throws {
        two.cloud.server.limits.keysMax = 3
        two.laptop.goOffline()
        for key in ["a", "b", "c"] { two.a.set("phone", forKey: key) }
        two.cloud.settle()
        two.b.set("laptop", forKey: "d")
        two.laptop.goOnline()
        two.cloud.settle()
        #expect(two.b.object(forKey: "d") == nil)
        #expect(two.laptop.notifications.map(\.news).contains(News(reason: quota, keys: ["d"])))
        let refused = try two.b.refusedWrites()
        #expect(refused.map(\.key) == ["d"])
        #expect(refused.first?.value as? String == "laptop")
        try two.b.forgetRefusedWrites()
        #expect(try two.b.refusedWrites().isEmpty)
    }

    @Test func `shrinks and loses keys, however low the limit has become`() {
        for key in ["a", "b", "c"] { two.a.set("long enough", forKey: key) }
        two.cloud.settle()
        two.cloud.server.limits.keysMax = 1
        two.cloud.server.limits.storeBytesMax = 4
        two.a.removeObject(forKey: "a")
        two.a.set("s", forKey: "b")
        two.cloud.settle()
        #expect(two.onServer.keys.sorted() == ["b", "c"])
        #expect(two.b.string(forKey: "b") == "s")
    }

    @Test func `knows a new limit from its next connection on`() {
        two.cloud.server.limits.valueBytesMax = 4
        two.phone.goOffline()
        two.phone.goOnline()
        two.cloud.settle()
        two.a.set("too long", forKey: "k")
        #expect(two.a.object(forKey: "k") == nil)
        #expect(two.cloud.server.limits.valueBytesMax == 4)
    }
}

private final class Counter: Sendable {
    private let value = Mutex(0)

    var count: Int { value.withLock(\.self) }

    func add(_ count: Int) { value.withLock { $0 += count } }
}
