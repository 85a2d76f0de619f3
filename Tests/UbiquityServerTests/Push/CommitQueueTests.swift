// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import NIOPosix
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct CommitQueueTests {
    private let storage = MemoryServerStorage()
    private let writer = BlockingThreads(name: "test", count: 1, waitingMax: 100)

    init() throws { try storage.makeSampleAccount() }

    private func queue(_ configure: (inout ServerSettings) -> Void = { _ in }) -> CommitQueue {
        var settings = ServerSettings(dataFolder: "")
        settings.clock = ServerClock(now: { 1_000 }, uptime: { 0 })
        configure(&settings)
        return CommitQueue(
            storage: storage, lanes: [writer],
            hub: PushHub(storage: storage, threads: writer, settings: settings),
            settings: settings, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func push(_ key: String) -> PendingPush {
        Sample.push(Sample.record(key, .integer(1), at: 500))
    }

    @Test func `a commit that fails is reported to all, and later ones succeed`() async throws {
        let queue = queue()
        storage.failure.withLock { $0 = .full }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<10 {
                group.addTask {
                    await #expect(throws: StorageError.full) {
                        try await queue.commit(push("key\(number)"), bytes: 1)
                    }
                }
            }
        }
        storage.failure.withLock { $0 = nil }
        #expect(storage.stores(of: Sample.account.id).isEmpty)
        _ = try await queue.commit(push("a"), bytes: 1)
        #expect(try storage.keys(since: nil) == ["a"])
        writer.close()
    }

    @Test func `a push that does not fit into the queue is asked to come again`() async throws {
        let queue = queue {
            $0.constants.waitingPushesMax = 2
            $0.buffersBytesMax = 120
        }
        let gate = DispatchSemaphore(value: 0)
        #expect(writer.submit { gate.wait() })
        async let first = queue.commit(push("a"), bytes: 10)
        try await until("the first push") { queue.waitingCount == 1 }
        await #expect(throws: Busy.self) { try await queue.commit(push("b"), bytes: 1) }
        gate.signal()
        _ = try await first
        _ = try await queue.commit(push("b"), bytes: 1)
        #expect(try storage.keys(since: nil) == ["a", "b"])
        writer.close()
    }

    @Test func `what waits of one account delays another's push by a group at most`() async throws {
        let other = Account(
            id: AccountID(rawValue: 0xBB), name: try #require(AccountName("bob")),
            createdMilliseconds: 1)
        try storage.createAccount(other, accountsMax: 9, by: .operatorLocally)
        let queue = queue()
        let gate = DispatchSemaphore(value: 0)
        #expect(writer.submit { gate.wait() })
        let store = StoreReference(account: other.id, identifier: Sample.store.identifier)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<6 {
                let push = push("key\(number)")
                group.addTask { _ = try await queue.commit(push, bytes: 8 << 20) }
            }
            try await until("the pushes") { queue.waitingCount == 6 }
            let write = Sample.record("a", .integer(1), at: 500)
            group.addTask { _ = try await queue.commit(Sample.push(write, to: store), bytes: 300) }
            try await until("the other's push") { queue.waitingCount == 7 }
            gate.signal()
            try await group.waitForAll()
        }
        #expect(storage.groups.withLock { $0 }.prefix(2).map(\.count) == [1, 1])
        #expect(storage.groups.withLock { $0 }.flatMap { $0 }[1] == store)
        writer.close()
    }

    @Test func `a group has a limited number of pushes of one account`() async throws {
        let queue = queue()
        let gate = DispatchSemaphore(value: 0)
        #expect(writer.submit { gate.wait() })
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                let push = push("key\(number)")
                group.addTask { _ = try await queue.commit(push, bytes: 300) }
            }
            try await until("the pushes") { queue.waitingCount == 20 }
            gate.signal()
            try await group.waitForAll()
        }
        #expect(storage.groups.withLock { $0 }.map(\.count) == [16, 4])
        writer.close()
    }

    @Test func `a group reads few histories for what must not be kept`() async throws {
        let queue = queue { $0.constants.storesPerAccountMax = 99 }
        let gate = DispatchSemaphore(value: 0)
        #expect(writer.submit { gate.wait() })
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<12 {
                let record = Sample.record("pin \(number)", .integer(1), at: 500)
                let push = PendingPush(
                    store: StoreReference(
                        account: Sample.account.id,
                        identifier: try StoreIdentifier("store\(number / 2)")),
                    push: Push([try Transaction([record], unkept: [record.key])]))
                group.addTask { _ = try await queue.commit(push, bytes: 300) }
                try await until("the push") { queue.waitingCount == number + 1 }
            }
            gate.signal()
            try await group.waitForAll()
        }
        #expect(storage.groups.withLock { $0 }.map(\.count) == [8, 4])
        writer.close()
    }
}

extension CommitQueue {
    fileprivate func commit(_ push: PendingPush, bytes: Int) async throws -> CommittedPush {
        try await withCheckedThrowingContinuation { continuation in
            do {
                let loop = MultiThreadedEventLoopGroup.singleton.any()
                try commit(push, bytes: bytes, on: loop) { continuation.resume(with: $0) }
            } catch { continuation.resume(throwing: error) }
        }
    }
}
