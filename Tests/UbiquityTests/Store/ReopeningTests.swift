// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import GRDB
import Synchronization
import Testing
import UbiquityCore

@testable import Ubiquity

@Suite struct `A store that is let go and made again at once` {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func open(_ name: String = "reopened") throws -> UbiquitousKeyValueStore {
        var configuration = UbiquityConfiguration(
            identifier: "TEAM.com.example.\(name)", home: folder.path)
        configuration.logger = .silent
        return try UbiquitousKeyValueStore(configuration: configuration)
    }

    @Test func `has all that was written to the one before`() throws {
        var store: UbiquitousKeyValueStore? = try open()
        for number in Int64(1)...20 {
            for key in 0..<50 { store?.set(number, forKey: "key \(key)") }
            store = nil
            store = try open()
            #expect(store?.longLong(forKey: "key 49") == number)
        }
    }

    /// A round trip that is under way keeps it.
    @Test func `is told of changes though the one before is still held`() async throws {
        let before = try open()
        let store = try open()
        let isTold = Mutex(false)
        let observer = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { _ in isTold.withLock { $0 = true } }
        let key = try Key("k")
        await withCheckedContinuation { continuation in
            store.backing.poster.post(Notice(.serverChange, [key])) { continuation.resume() }
        }
        #expect(isTold.withLock { $0 })
        NotificationCenter.default.removeObserver(observer)
        withExtendedLifetime(before) {}
    }

    @Test func `also when it was closed, once or twice, on another thread`() async throws {
        for number in Int64(1)...20 {
            let store = try open()
            store.set(number, forKey: "key")
            async let closing: Void = close(store)
            store.close()
            #expect(try open().longLong(forKey: "key") == number)
            await closing
        }
    }

    /// The one before cannot save while another program has the file, for 10 seconds at most. A machine
    /// may be busy for as long, so there are several attempts.
    @Test func `lets other stores be opened while it waits for the one before`() throws {
        for attempt in 1...5 where try opensOthers(attempt) { return }
        Issue.record("other stores waited too")
    }

    /// - Returns: Whether other stores could be opened before the one that waits.
    private func opensOthers(_ attempt: Int) throws -> Bool {
        var store: UbiquitousKeyValueStore? = try open()
        _ = store?.synchronize()
        let files =
            FileManager.default.enumerator(atPath: folder.path)?
            .compactMap { $0 as? String } ?? []
        let file = try #require(files.first { $0.hasSuffix("reopened.sqlite") })
        let isReopened = Mutex(false)
        let queue = DispatchQueue(label: "reopening")
        let other = try DatabaseQueue(path: folder.file(file))
        defer { queue.sync {} }
        return try other.writeWithoutTransaction { db in
            try db.execute(sql: "BEGIN IMMEDIATE")
            defer { try? db.execute(sql: "ROLLBACK") }
            store?.set(Int64(attempt), forKey: "key")
            store = nil
            queue.async { [self] in
                _ = try? open()
                isReopened.withLock { $0 = true }
            }
            // The first of these may come before the other thread has begun.
            for number in 1...3 { _ = try open("other-\(attempt)-\(number)") }
            return !isReopened.withLock(\.self)
        }
    }

    @concurrent private func close(_ store: UbiquitousKeyValueStore) async { store.close() }
}
