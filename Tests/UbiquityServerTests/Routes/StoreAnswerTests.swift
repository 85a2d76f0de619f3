// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import Synchronization
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// Reading a store into pieces, in slices between which others have their turn.
struct StoreAnswerTests {
    private let threads = BlockingThreads(name: "test", count: 1, waitingMax: 40)
    private let budget = ByteBudget(max: 64 << 20)
    private let other = AccountID(rawValue: 0xBB)

    private let rights = DeviceRights(
        reference: DeviceReference(account: Sample.account.id, id: Sample.device))

    private var permit: AccountShares.Permit {
        get throws { try AccountShares(of: budget, placesMax: 1).take(rights) }
    }

    private func bytes(of answer: StoreAnswer) -> [UInt8] {
        var (answer, bytes) = (answer.answer, [UInt8]())
        while let piece = answer.next() {
            #expect(piece.readableBytes <= Answer.pieceBytes)
            bytes.append(contentsOf: piece.readableBytesView)
        }
        return bytes
    }

    @Test(arguments: WireFormat.allCases)
    func `a large store is encoded in slices, and held as bytes`(format: WireFormat) throws {
        let value = PropertyListValue.array(Array(repeating: .boolean(true), count: 10_000))
        let records = (0..<50).map { Sample.record("key\($0)", value, at: 500) }
        var changes = ChangeSet(
            records: [], cursor: Sample.position(1).cursor, serverMilliseconds: 1_000,
            isWhole: true)
        var draft = StoreAnswer.draft(
            .message(format), changes, records.map(StoredRecord.init), try permit)
        let stored = budget.bytes
        var slices = 1
        var answer = try draft.encodeSlice()
        while answer == nil {
            answer = try draft.encodeSlice()
            slices += 1
        }
        let made = try #require(answer)
        #expect(slices >= stored / (256 << 10))
        // The stored form is no longer held.
        #expect(budget.bytes == made.answer.bytes)
        changes.records = records
        #expect(bytes(of: made) == format.encode(WireChanges(changes)))
        #expect(budget.bytes == 0)
    }

    @Test func `the versions that a page is chosen among count while they are read`() throws {
        let storage = try SQLiteServerStorage.inMemory()
        for number: Int64 in 1...20 {
            try storage.commit(Sample.push(Sample.record("k", .integer(number), at: number)))
        }
        let permit = try permit
        var counted = 0
        let versions = try HistoryRoutes.read(storage, Sample.store, nil, permit) { _, lines in
            #expect(lines.count == 20)
            counted = budget.bytes
            return [0]
        }
        #expect(versions.count == 1)
        #expect(counted >= 20 * MemoryLayout<HistoryRule.Line>.stride)
        #expect(budget.bytes == 0)
    }

    @Test func `above the limit of answers, no further store is read`() async throws {
        let storage = try SQLiteServerStorage.inMemory()
        try storage.execute("DROP TABLE store")
        let reader = StoreReader(
            storage: storage, threads: threads, lastSeen: LastSeenBuffer(clock: .system),
            clock: .system, shares: AccountShares(of: budget, placesMax: 9),
            withdrawReset: { _, _ in })
        func read() async throws -> StoreAnswer {
            try await withCheckedThrowingContinuation { continuation in
                do {
                    try reader.answer(
                        .event(of: nil), of: Sample.store, since: nil, isSaved: false,
                        sealedWith: nil, for: rights
                    ) { continuation.resume(with: $0) }
                } catch { continuation.resume(throwing: error) }
            }
        }
        budget.note(budget.max)
        await #expect(throws: Problem.self) { try await read() }
        budget.give(budget.max)
        // Now it is read, as far as that goes.
        await #expect(throws: StorageError.self) { try await read() }
        threads.close()
    }

    @Test(arguments: [nil, Sample.store.identifier])
    func `a listener that resumes and has all is told nothing`(name: StoreIdentifier?) throws {
        let head = ChangeSet(
            records: [], cursor: Sample.position(1).cursor, serverMilliseconds: 1, isWhole: false)
        var draft = StoreAnswer.draft(.event(of: name), head, [], try permit)
        #expect(try draft.encodeSlice()?.answer.bytes == 0)
        var whole = head
        whole.isWhole = true
        draft = StoreAnswer.draft(.event(of: name), whole, [], try permit)
        let answer = try #require(try draft.encodeSlice())
        let data = String(
            decoding: WireFormat.json.encode(WireChanges(whole, of: name)), as: UTF8.self)
        #expect(
            String(decoding: bytes(of: answer), as: UTF8.self)
                == ServerSentEvent.changesHead(whole.cursor, of: name) + data + ServerSentEvent.end)
    }

    // MARK: - Turns

    /// Occupies the only thread until signalled.
    private func block() -> DispatchSemaphore {
        let gate = DispatchSemaphore(value: 0)
        #expect(threads.submit { gate.wait() })
        return gate
    }

    @Test func `one account's reads delay another's by one slice`() async throws {
        let gate = block()
        let noted = Noted()
        try await until("the thread") { threads.waitingCount == 0 }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for read in 0..<4 {
                group.addTask { [threads] in
                    _ = try await threads.run(slicesFor: Sample.account.id) {
                        noted.slice(of: read)
                    }
                }
            }
            try await until("the reads") { threads.waitingCount == 4 }
            group.addTask { [threads, other] in
                try await threads.run(for: other) { noted.note("other") }
            }
            try await until("the other read") { threads.waitingCount == 5 }
            gate.signal()
            try await group.waitForAll()
        }
        let all = noted.all.withLock { $0 }
        #expect(all.count == 13 && all[1] == "other")
        // A read that has begun is finished first, so that few are in memory.
        #expect(Set(all[..<4]).count == 2)
        threads.close()
    }

    /// Shared state: `all`, guarded by its mutex.
    private final class Noted: Sendable {
        let all = Mutex<[String]>([])

        func note(_ text: String) { all.withLock { $0.append(text) } }

        /// Nil until the third slice of a read.
        func slice(of read: Int) -> Bool? {
            all.withLock { all in
                all.append("\(read)")
                return all.count { $0 == "\(read)" } == 3 ? true : nil
            }
        }
    }

    @Test func `an account has a share of the places to wait`() async throws {
        let gate = block()
        try await until("the thread") { threads.waitingCount == 0 }
        for _ in 0..<10 { #expect(threads.submit(for: Sample.account.id) {}) }
        #expect(!threads.submit(for: Sample.account.id) {})
        #expect(threads.submit(for: other) {})
        #expect(threads.submit {})
        gate.signal()
        threads.close()
    }
}
