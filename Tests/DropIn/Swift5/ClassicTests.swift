// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// The code of Swift 5, run. On the default store alone, one test after the other: it is full of
/// globals.
@Suite(.serialized)
struct ClassicTests {
    init() { TestHome.use() }

    @Test func `globals and forced casts work`() {
        #expect(hasStore())
        saveScore(13, name: "Ada")
        #expect(loadScore() == (13, "Ada"))
        resetScore()
        #expect(cloudStore.object(forKey: kScoreKey) as! Int == 0)
        #expect(cloudStore.object(forKey: kNameKey) == nil)
        saveScore(1, name: nil)
        #expect(cloudStore.string(forKey: kNameKey) == nil)
    }

    @Test func `a handler that casts by force reads a notification`() {
        handleChange(changeNotification(NSUbiquitousKeyValueStoreInitialSyncChange, ["a"]))
        #expect(lastReason == 1 && changedKeys == ["a"])
        handleChange(changeNotification(NSUbiquitousKeyValueStoreQuotaViolationChange, ["a"]))
        #expect(lastReason == 2 && changedKeys == [])

        let observer = ClassicObserver()
        var heard: [String] = []
        observer.onChange = { heard = $0 }
        observer.register()
        observer.unregister()
        // It heard every store of the process meanwhile.
        (observer.reasons, observer.keys, heard) = ([], [], [])
        observer.storeDidChange(
            changeNotification(NSUbiquitousKeyValueStoreServerChange, ["b", "c"]))
        #expect(observer.reasons == [0] && observer.keys == ["b", "c"] && heard == ["b", "c"])
        let read = observer.readAsDictionary(changeNotification(3, ["d"]))
        #expect(read?.reason == 3 && read?.keys == ["d"])
    }

    @Test func `a store made at each use is one and the same`() {
        let fresh = FreshStore()
        fresh.save(5, for: "fresh.a")
        fresh.save("text", for: "fresh.b")
        fresh.save([1, 2], for: "fresh.c")
        fresh.save(URL(fileURLWithPath: "/"), for: "fresh.a")
        #expect(fresh.load("fresh.a") as! Int == 5)
        #expect(NSUbiquitousKeyValueStore.default.string(forKey: "fresh.b") == "text")
        fresh.remove("fresh.b")
        #expect(fresh.count(withPrefix: "fresh.") == 2)
    }

    @Test func `bookmarks pass through arrays of every kind`() {
        let bookmarks = ClassicBookmarks()
        bookmarks.add("One", address: "https://example.org/1")
        bookmarks.add("Two", address: "https://example.org/2")
        bookmarks.edit(0, name: "First")
        bookmarks.addThroughMutableArray("Three")
        #expect(bookmarks.names() == ["First", "Two", "Three"])
        let reread = ClassicBookmarks()
        #expect(reread.bookmarks.map { $0["url"]! }.last == "")
        reread.delete(1)
        #expect(ClassicBookmarks().names() == ["First", "Three"])
    }

    @Test func `a property for each setting reads what it wrote`() {
        let settings = SettingsManager.sharedInstance
        settings.isMetric = true
        settings.fontSize = 12.5
        settings.visits += 1
        settings.margin = 4.5
        settings.lastVisit = Date(timeIntervalSinceReferenceDate: 0.5)
        settings.background = ["red": 0.5, "name": "rose", "dark": false, "order": 3]
        settings.nickname = "A"
        settings["classic.any"] = [1, 2]
        #expect(settings.isMetric && settings.fontSize == 12.5 && settings.visits == 1)
        #expect(settings.margin == 4.5)
        #expect(settings.lastVisit == Date(timeIntervalSinceReferenceDate: 0.5))
        #expect(settings.background["red"] as! Double == 0.5)
        #expect(settings.background["dark"] as! Bool == false)
        #expect(settings.background["dark"] as! NSNumber == 0)
        #expect(settings.background["order"] as! Int == 3)
        #expect(settings.background["order"] as! Float == 3)
        #expect(settings.nickname == "A")
        #expect(settings["classic.any"] as! [Int] == [1, 2])
        settings.nickname = nil
        settings["classic.any"] = nil
        settings.lastVisit = nil
        #expect(settings.nickname == nil && settings["classic.any"] == nil)
        #expect(settings.lastVisit == nil)
    }

    @Test func `the higher of two levels is written back`() throws {
        let defaults = try #require(UserDefaults(suiteName: "classic-" + UUID().uuidString))
        let game = ClassicLevelGame(defaults: defaults)
        game.start()
        game.reach(13)
        game.store.set(1, forKey: "classic.level")
        game.compare(changeNotification(NSUbiquitousKeyValueStoreServerChange, ["classic.level"]))
        #expect(game.store.object(forKey: "classic.level") as? Int == 13)
        #expect(game.messages == ["13 is more than 1"])
        game.store.set(20, forKey: "classic.level")
        game.compare(changeNotification(NSUbiquitousKeyValueStoreServerChange, ["classic.level"]))
        #expect(defaults.integer(forKey: "classic.level") == 20)
    }

    @Test func `doubles that override a part are called for that part`() {
        let partial = PartialStore()
        partial.set(Data([1]), forKey: "classic.part")
        partial.set(5, forKey: "classic.number")
        #expect(partial.data(forKey: "classic.part") == Data([1]))
        #expect(partial.storage["classic.number"] as? Int64 == 5)
        #expect(partial.synchronize() && partial.synchronizeCount == 1)
        let data = DataStore()
        data.set(Data([2]), forKey: "classic.part")
        data.set("text", forKey: "classic.text")
        #expect(data.storage == ["classic.part": Data([2])])
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: "classic.part") == nil)
        #expect(NSUbiquitousKeyValueStore.default.string(forKey: "classic.text") == "text")
    }

    @Test func `a double need not call the initialiser of the class`() {
        let store = CountingStore()
        store.set(7, forKey: "classic.count")
        #expect(store.longLong(forKey: "classic.first") == 1)
        #expect(store.longLong(forKey: "classic.count") == 7 && store.writes == 1)
        #expect(CountingStore(values: ["a": "b"]).string(forKey: "a") == "b")
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: "classic.count") == nil)
    }

    @Test func `one protocol serves the defaults and the store`() {
        let counter = Counter(key: "classic.counter")
        counter.increment()
        counter.increment()
        #expect(counter.value == 2)
        let double = PartialStore()
        Counter(key: "classic.counter", store: double).increment()
        #expect(double.storage["classic.counter"] as? Int64 == 3)
    }
}

#endif
