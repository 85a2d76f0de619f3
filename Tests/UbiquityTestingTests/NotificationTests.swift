// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Testing
import Ubiquity
import UbiquityTesting

@Suite("An app in a test")
struct NotificationTests {
    private let two = TwoDevices()

    private func observe(
        _ store: UbiquitousKeyValueStore, queue: OperationQueue? = nil,
        _ body: @escaping @Sendable (Notification) -> Void
    ) -> any NSObjectProtocol {
        NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: queue, using: body)
    }

    @Test func `gets the real notification, on the thread that lets time pass`() {
        let threads = Mutex<[ObjectIdentifier]>([])
        let observer = observe(two.b) { notification in
            #expect(
                notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
                    == ["k"])
            threads.withLock { $0.append(ObjectIdentifier(Thread.current)) }
        }
        two.a.set("x", forKey: "k")
        #expect(threads.withLock(\.self).isEmpty)
        two.cloud.settle()
        #expect(threads.withLock(\.self) == [ObjectIdentifier(Thread.current)])
        NotificationCenter.default.removeObserver(observer)
    }

    @MainActor
    @Test func `gets it on the main queue, also in a test of the main actor`() async {
        let count = Mutex(0)
        let store = two.b
        let observer = observe(store, queue: .main) { _ in
            // As apps do: to wait for the store in its own notification must not hang.
            store.synchronize()
            count.withLock { $0 += 1 }
        }
        two.a.set("x", forKey: "k")
        await two.cloud.settle()
        #expect(count.withLock(\.self) == 1)
        two.a.set("y", forKey: "k")
        await two.cloud.advance(by: .seconds(1))
        #expect(count.withLock(\.self) == 2)
        NotificationCenter.default.removeObserver(observer)
    }

    @Test func `may let time pass while it is being told`() {
        let seen = Mutex<[String?]>([])
        let (a, b, cloud) = (two.a, two.b, two.cloud)
        let observer = observe(b) { _ in
            b.set("answer", forKey: "l")
            cloud.settle()
            seen.withLock { $0.append(a.string(forKey: "l")) }
        }
        a.set("x", forKey: "k")
        cloud.settle()
        #expect(seen.withLock(\.self) == ["answer"])
        NotificationCenter.default.removeObserver(observer)
    }

    @Test func `reads the moment of each notification`() {
        let before = two.cloud.now
        two.cloud.advance(by: .seconds(100))
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        let posted = two.laptop.notifications
        #expect(posted.count == 1)
        #expect(posted[0].date >= before.addingTimeInterval(100))
        #expect(posted[0].date <= two.cloud.now)
        #expect((posted[0].store, posted[0].process) == (TwoDevices.identifier, "app"))
        two.laptop.forgetNotifications()
        #expect(two.laptop.notifications.isEmpty)
    }

    @Test func `may write from several threads while time passes`() async {
        let (a, b, cloud) = (two.a, two.b, two.cloud)
        await withTaskGroup { group in
            for writer in 0..<4 {
                group.addTask {
                    for number in 0..<50 {
                        (writer % 2 == 0 ? a : b).set(number, forKey: "k\(writer)")
                        if number % 10 == 0 { a.synchronize() }
                    }
                }
            }
            for _ in 0..<4 { group.addTask { await cloud.settle() } }
        }
        await cloud.settle()
        for writer in 0..<4 {
            #expect(a.longLong(forKey: "k\(writer)") == 49)
            #expect(b.longLong(forKey: "k\(writer)") == 49)
        }
    }

    // MARK: - Waiting

    @Test func `waits for a round trip without a word to the cloud`() async throws {
        two.a.set("x", forKey: "k")
        let before = two.cloud.now
        try await two.a.synchronizeNow()
        #expect(two.onServer["k"] as? String == "x")
        #expect(two.cloud.now > before)
        try await two.b.synchronizeNow()
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `waits for a round trip of a process that does not hold the connection`()
        async throws
    {
        let w = two.phone.newProcess("widget").openStore(TwoDevices.identifier)
        w.set("x", forKey: "k")
        try await w.synchronizeNow()
        #expect(two.onServer["k"] as? String == "x")
    }

    @Test func `hears that a round trip failed`() async {
        func code() async -> UbiquityError.Code? {
            do { try await two.a.synchronizeNow() } catch { return (error as? UbiquityError)?.code }
            return nil
        }
        two.phone.goOffline()
        #expect(await code() == .unreachable)
        two.phone.goOnline()
        two.phone.network.isSilent = true
        #expect(await code() == .unreachable)
        two.phone.network.isSilent = false
        #expect(await code() == nil)
        two.phone.signOut()
        await two.cloud.settle()
        #expect(await code() == .notSignedIn)
    }

    @Test func `waits for its first download`() async throws {
        two.a.set("x", forKey: "k")
        await two.cloud.settle()
        let c = two.cloud.newDevice("tablet").openStore(TwoDevices.identifier)
        try await c.initialSync()
        #expect(c.string(forKey: "k") == "x")
    }

    @Test func `reads in a sequence what has been told`() async {
        var changes = two.b.changes.makeAsyncIterator()
        two.a.set("x", forKey: "k")
        await two.cloud.settle()
        #expect(await changes.next() == UbiquityChange(origin: .elsewhere, keys: ["k"]))
        two.b.set("y", forKey: "l")
        await two.cloud.settle()
        #expect(await changes.next() == UbiquityChange(origin: .own, keys: ["l"]))
    }

    @Test func `reads the values of a typed key`() async {
        let theme = UbiquityKey("theme", default: "light")
        var values = two.b.values(for: theme).makeAsyncIterator()
        #expect(await values.next() == "light")
        two.a[theme] = "dark"
        await two.cloud.settle()
        #expect(await values.next() == "dark")
    }

    @MainActor
    @Test func `has tasks of its own, which are waited for`() async {
        let theme = UbiquityKey("theme", default: "light")
        var shown: [String] = []
        let reader = Task {
            for await value in two.b.values(for: theme) { shown.append(value) }
        }
        #expect(await two.cloud.settle(until: { shown == ["light"] }))
        two.a[theme] = "dark"
        #expect(await two.cloud.settle(until: { shown == ["light", "dark"] }))
        reader.cancel()
    }

    @Test func `has nobody wait for a process that was killed, nor for a cloud that is gone`() async
    {
        func code(of store: UbiquitousKeyValueStore) async -> UbiquityError.Code? {
            do { try await store.synchronizeNow() } catch { return (error as? UbiquityError)?.code }
            return nil
        }
        let (phone, a) = (two.phone, two.a)
        phone.network.isSilent = true
        let observer = observe(two.b) { _ in phone.kill() }
        // Its answer cannot come before half a minute, and the process is killed in between.
        two.laptop.newProcess("helper").openStore(TwoDevices.identifier).set("x", forKey: "k")
        #expect(await code(of: a) == .storage)
        NotificationCenter.default.removeObserver(observer)

        let store = TestCloud().newDevice("phone").openStore(TwoDevices.identifier)
        #expect(await code(of: store) == .storage)
    }

    @Test func `has a sequence end when its process is killed`() async {
        var changes = two.b.changes.makeAsyncIterator()
        two.laptop.kill()
        #expect(await changes.next() == nil)
    }

    // MARK: - The default store

    private struct Settings {
        func save(_ theme: String) {
            UbiquitousKeyValueStore.default.set(theme, forKey: "theme")
        }

        var theme: String? { UbiquitousKeyValueStore().string(forKey: "theme") }
    }

    @Test func `uses the default store of a device`() async {
        two.a.asDefault { Settings().save("dark") }
        await two.cloud.settle()
        let theme = await two.b.asDefault {
            await Task { Settings().theme }.value
        }
        #expect(theme == "dark")
        #if !canImport(Darwin)
        two.a.asDefault { #expect(FileManager.default.ubiquityIdentityToken != nil) }
        two.phone.signOut()
        await two.cloud.settle()
        two.a.asDefault { #expect(FileManager.default.ubiquityIdentityToken == nil) }
        #endif
    }
}
