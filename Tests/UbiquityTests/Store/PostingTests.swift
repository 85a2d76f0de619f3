// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import Ubiquity

/// From where, and when, an app's observers are called.
///
/// A refusal by quota is what an app can be told of without a server.
@Suite(.timeLimit(.minutes(15))) struct `A notification` {
    private static let tooLarge = Data(count: 1_048_577)

    @Test func `comes from a queue of the store, after the app's call and not inside of it`()
        async throws
    {
        let local = try LocalStore()
        let hasReturned = DispatchSemaphore(value: 0)
        let posted = Mutex<[(isOnMain: Bool, waited: DispatchTimeoutResult)]>([])
        let observer = Observation(of: local.store) {
            // In the middle of the call, it would wait for itself.
            let waited = hasReturned.wait(timeout: .now() + 120)
            posted.withLock { $0.append((MainQueue.isCurrent, waited)) }
        }
        await MainActor.run {
            #expect(MainQueue.isCurrent)
            local.store.set(Self.tooLarge, forKey: "large")
            local.store.synchronize()
        }
        hasReturned.signal()
        try await until("the notification") { posted.withLock { !$0.isEmpty } }
        #expect(posted.withLock { $0.map(\.isOnMain) } == [false])
        #expect(posted.withLock { $0.map(\.waited) } == [.success])
        withExtendedLifetime(observer) {}
    }

    @Test func `is told one after the other, in the order of what happened`() async throws {
        let local = try LocalStore()
        let posted = Mutex<(keys: [String], isInside: Bool, overlaps: Int)>(([], false, 0))
        let observer = Observation(of: local.store) { keys in
            posted.withLock { posted in
                if posted.isInside { posted.overlaps += 1 }
                posted.isInside = true
            }
            Thread.sleep(forTimeInterval: 0.001)
            posted.withLock { posted in
                posted.keys += keys
                posted.isInside = false
            }
        }
        let expected = (10...30).map { "key \($0)" }
        for key in expected {
            local.store.set(Self.tooLarge, forKey: key)
            // What waits to be told is told together.
            local.store.synchronize()
        }
        try await until("all notifications") { posted.withLock { $0.keys.count >= expected.count } }
        #expect(posted.withLock(\.keys) == expected)
        #expect(posted.withLock(\.overlaps) == 0)
        withExtendedLifetime(observer) {}
    }

    @Test func `finds no lock held: its observer may call whatever the store has`() async throws {
        let local = try LocalStore()
        let store = local.store
        let isDone = Signal()
        let observer = Observation(of: store) {
            store.set("from the observer", forKey: "a")
            store.removeObject(forKey: "b")
            try? store.performBatch { try $0.set(1, forKey: "c") }
            let reads = (store.object(forKey: "a"), store.dictionaryRepresentation, store.status)
            let isSaved = store.synchronize()
            let isRead = reads.0 as? String == "from the observer" && reads.1.count == 2
            let refused = try? store.refusedWrites()
            if isSaved, isRead, refused?.isEmpty == true { isDone.fire() }
            // And one that is told of in its turn, when this one is done.
            if isDone.times == 1 { store.set(Self.tooLarge, forKey: "once more") }
        }
        store.set("old", forKey: "b")
        store.set(Self.tooLarge, forKey: "large")
        try await isDone.wait(times: 2)
        #expect(store.dictionaryRepresentation.count == 2)
        withExtendedLifetime(observer) {}
    }

    /// The process of the tests has an asynchronous main. A post from its main queue would wait for
    /// this observer for ever, on Linux.
    @Test func `reaches an observer on the main queue, whoever caused it`() async throws {
        let local = try LocalStore()
        let posted = Mutex<[Bool]>([])
        let observer = Observation(of: local.store, queue: .main) {
            let value = local.store.object(forKey: "large")
            posted.withLock { $0.append(MainQueue.isCurrent && value == nil) }
        }
        await MainActor.run { local.store.set(Self.tooLarge, forKey: "large") }
        try await until("the notification") { posted.withLock { !$0.isEmpty } }
        Thread.detachNewThread { local.store.set(Self.tooLarge, forKey: "large") }
        try await until("the other one") { posted.withLock { $0.count == 2 } }
        #expect(posted.withLock(\.self) == [true, true])
        withExtendedLifetime(observer) {}
    }

    @Test func `comes on the queue that the app asks for`() async throws {
        let key = DispatchSpecificKey<String>()
        let queue = DispatchQueue(label: "the app's own")
        queue.setSpecific(key: key, value: queue.label)
        let local = try LocalStore { $0.notificationQueue = queue }
        let labels = Mutex<[String?]>([])
        let observer = Observation(of: local.store) {
            let label = DispatchQueue.getSpecific(key: key)
            labels.withLock { $0.append(label) }
        }
        local.store.set(Self.tooLarge, forKey: "large")
        try await until("the notification") { labels.withLock { !$0.isEmpty } }
        #expect(labels.withLock(\.self) == [queue.label])
        withExtendedLifetime(observer) {}
    }
}

/// Calls for each notification of a store, with its keys, until it goes away.
///
/// `@unchecked Sendable`: the token is only ever handed back to the centre.
private final class Observation: @unchecked Sendable {
    private let token: any NSObjectProtocol

    init(
        of store: UbiquitousKeyValueStore, queue: OperationQueue? = nil,
        _ body: @escaping @Sendable ([String]) -> Void
    ) {
        token = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: queue
        ) { notification in
            let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey]
            body(keys as? [String] ?? [])
        }
    }

    convenience init(
        of store: UbiquitousKeyValueStore, queue: OperationQueue? = nil,
        _ body: @escaping @Sendable () -> Void
    ) {
        self.init(of: store, queue: queue) { _ in body() }
    }

    deinit { NotificationCenter.default.removeObserver(token) }
}
