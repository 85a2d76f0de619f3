// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Synchronization
import Testing
import Ubiquity

@testable import UbiquityDefaults

/// When a mirror looks, and whom it tells of what it did.
@Suite struct `A mirror that works` {
    @Test
    func `tells which preferences it wrote, never inside of a call and never on the main queue`()
        async throws
    {
        let device = try Device()
        try await device.run([.prefix("k")]) { mirror in
            var changes = mirror.changes.makeAsyncIterator()
            let observer = Observer(mirror)
            mirror.store.set(1, forKey: "k1")
            #expect(try await changes.next() == ["k1"])
            // Its observer compares the values at the time of the call.
            try await until("the notification") { observer.posted.count == 1 }
            try mirror.store.performBatch { batch in
                try batch.set(2, forKey: "k2")
                batch.removeObject(forKey: "k1")
            }
            mirror.set(3, forKey: "k3")
            #expect(try await changes.next() == ["k1", "k2"])
            try await until("the notification") { observer.posted.count == 2 }
            #expect(observer.posted.map(\.keys) == [["k1"], ["k1", "k2"]])
            #expect(observer.posted.allSatisfy { !$0.isOnMainQueue && $0.values == $0.keys.count })
        }
    }

    @Test func `has the store's values in the preferences when it was made`() async throws {
        let device = try Device()
        let store = try device.openStore()
        defer { store.close() }
        store.set("dark", forKey: "theme")
        let mirror = try DefaultsMirror(.suite(device.suite), store, keys: ["theme"])
        #expect(device.defaults.string(forKey: "theme") == "dark")
        mirror.stop()
    }

    @Test func `notices a write to the preferences when it is asked, and by itself after a while`()
        async throws
    {
        let device = try Device()
        let store = try device.openStore()
        defer { store.close() }
        let mirror = try DefaultsMirror(
            .suite(device.suite), store, keys: ["theme"], interval: .milliseconds(20))
        defer { mirror.stop() }
        device.defaults.set("dark", forKey: "theme")
        try await until("the theme") { store.string(forKey: "theme") == "dark" }
        device.defaults.set("light", forKey: "theme")
        await mirror.updateNow()
        #expect(store.string(forKey: "theme") == "light")
    }

    #if os(Linux)
    @Test func `notices another process's write to the preferences, and does not undo it`()
        async throws
    {
        let device = try Device()
        try await device.run(["theme", "size"]) { mirror in
            mirror.set("dark", forKey: "theme")
            await mirror.updateNow()
            let file = URL(fileURLWithPath: PreferencesFile.folder + "/\(device.suite).plist")
            var form = PropertyListSerialization.PropertyListFormat.xml
            var values = try #require(
                PropertyListSerialization.propertyList(
                    from: Data(contentsOf: file), options: [], format: &form) as? [String: Any])
            values["theme"] = "by another process"
            values["size"] = 12
            try PropertyListSerialization.data(fromPropertyList: values, format: .xml, options: 0)
                .write(to: file)
            await mirror.updateNow()
            #expect(mirror.store.string(forKey: "theme") == "by another process")
            #expect(mirror.store.longLong(forKey: "size") == 12)
            #expect(device.defaults.string(forKey: "theme") == "by another process")
        }
    }
    #endif

    @Test func `does nothing any more once it was stopped, or is gone`() async throws {
        let device = try Device()
        let store = try device.openStore()
        defer { store.close() }
        var mirror: DefaultsMirror? = try DefaultsMirror(
            .suite(device.suite), store, keys: ["theme"], interval: .milliseconds(5))
        let stopped = try #require(mirror)
        var changes = stopped.changes.makeAsyncIterator()
        stopped.stop()
        stopped.set("dark", forKey: "theme")
        await stopped.updateNow()
        #expect(store.object(forKey: "theme") == nil)
        #expect(try await changes.next() == nil)

        mirror = try DefaultsMirror(.suite(device.suite), store, keys: ["theme"])
        #expect(store.string(forKey: "theme") == "dark")
        mirror = nil
        // Its place is free again.
        try DefaultsMirror(.suite(device.suite), store, keys: ["theme"]).stop()
    }

    @Test func `can be called from many threads at once`() async throws {
        let device = try Device()
        try await device.run([.prefix("k")]) { mirror in
            await withTaskGroup { group in
                for number in 0..<8 {
                    group.addTask {
                        for round in 0..<25 {
                            mirror.set(round, forKey: "k\(number)")
                            mirror.store.set(round, forKey: "k\(number + 8)")
                            if round % 5 == 0 { await mirror.updateNow() }
                        }
                    }
                }
            }
            await mirror.updateNow()
            await mirror.updateNow()
            for number in 0..<16 {
                #expect(device.defaults.integer(forKey: "k\(number)") == 24)
                #expect(mirror.store.longLong(forKey: "k\(number)") == 24)
            }
        }
    }
}

/// An app's observer of a mirror.
///
/// `@unchecked Sendable`: the token is only ever handed back to the centre.
private final class Observer: @unchecked Sendable {
    struct Posted {
        var keys: [String]
        var isOnMainQueue: Bool
        /// The number of keys with the same value in the store and the preferences.
        var values: Int
    }

    private final class Box: Sendable {
        let all = Mutex<[Posted]>([])
    }

    private let box = Box()
    private let token: any NSObjectProtocol

    init(_ mirror: DefaultsMirror) {
        token = NotificationCenter.default.addObserver(
            forName: DefaultsMirror.didChangeDefaultsNotification, object: mirror, queue: nil
        ) { [box, weak mirror] notification in
            let keys = notification.userInfo?[DefaultsMirror.changedKeysKey] as? [String] ?? []
            let same = keys.filter { key in
                mirror?.defaults.integer(forKey: key)
                    == mirror.map { Int($0.store.longLong(forKey: key)) }
            }
            let posted = Posted(keys: keys, isOnMainQueue: MainQueue.isCurrent, values: same.count)
            box.all.withLock { $0.append(posted) }
        }
    }

    deinit { NotificationCenter.default.removeObserver(token) }

    var posted: [Posted] { box.all.withLock(\.self) }
}
