// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import NIOPosix
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct CommitQueueTests {
    private let storage: SQLiteServerStorage
    private let writer = BlockingThreads(name: "test", count: 1, waitingMax: 100)

    init() throws { storage = try .inMemory() }

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
        try storage.execute(
            """
            CREATE TEMP TRIGGER fault BEFORE INSERT ON record
            BEGIN SELECT RAISE(ABORT, 'a test'); END
            """)
        let error = StorageError.failed("SQLite error 1811, a test")
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<10 {
                group.addTask {
                    await #expect(throws: error) {
                        try await queue.commit(push("key\(number)"), bytes: 1)
                    }
                }
            }
        }
        try storage.execute("DROP TRIGGER fault")
        #expect(try storage.stores(of: Sample.account.id).isEmpty)
        _ = try await queue.commit(push("a"), bytes: 1)
        #expect(try storage.keys(since: nil) == ["a"])
        writer.close()
    }

    @Test func `a push that finds no room is asked to come again`() async throws {
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
