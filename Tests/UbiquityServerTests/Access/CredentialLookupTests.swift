// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct CredentialLookupTests {
    /// Shared state: each property is guarded by its lock.
    private final class Known: Sendable {
        let rights = Mutex<[SecretHash: DeviceRights]>([:])
        let failure = Mutex<StorageError?>(nil)
        /// How many credentials each look-up was for.
        let lookUps = Mutex<[Int]>([])

        func lookup(on threads: BlockingThreads) -> CredentialLookup {
            CredentialLookup(threads: threads) { [self] credentials throws(StorageError) in
                if let failure = failure.withLock(\.self) { throw failure }
                lookUps.withLock { $0.append(credentials.count) }
                return rights.withLock { rights in credentials.map { .success(rights[$0]) } }
            }
        }
    }

    private let known = Known()

    private func rights(
        _ lookup: CredentialLookup, _ credential: String
    ) async throws -> DeviceRights? {
        try await withCheckedThrowingContinuation { continuation in
            lookup.rights(of: SecretHash(of: credential)) { continuation.resume(with: $0) }
        }
    }

    @Test func `devices that wait are looked up together`() async throws {
        let device = DeviceRights(
            reference: DeviceReference(account: Sample.account.id, id: Sample.device))
        known.rights.withLock { $0[SecretHash(of: "credential")] = device }
        let threads = BlockingThreads(name: "test", count: 1, waitingMax: 100)
        let lookup = known.lookup(on: threads)
        let gate = DispatchSemaphore(value: 0)
        #expect(threads.submit { gate.wait() })
        try await withThrowingTaskGroup(of: DeviceRights?.self) { group in
            for number in 1...100 {
                let credential = number.isMultiple(of: 2) ? "credential" : "other"
                group.addTask { try await rights(lookup, credential) }
            }
            defer { gate.signal() }
            try await until("all wait") { lookup.waitingCount == 100 }
            gate.signal()
            let found = try await group.reduce(into: []) { $0.append($1) }
            #expect(found.filter { $0 == device }.count == 50)
            #expect(found.filter { $0 == nil }.count == 50)
        }
        #expect(known.lookUps.withLock(\.self) == [64, 36])
        #expect(try await rights(lookup, "credential") == device)
        #expect(known.lookUps.withLock(\.self) == [64, 36, 1])
        threads.close()
    }

    @Test func `others have their turn while look-ups keep coming`() async throws {
        let threads = BlockingThreads(name: "test", count: 1, waitingMax: 100)
        let lookup = known.lookup(on: threads)
        let isOver = Mutex(false)
        @Sendable func ask() {
            guard !isOver.withLock(\.self) else { return }
            lookup.rights(of: SecretHash(of: "other")) { _ in ask() }
        }
        ask()
        defer { isOver.withLock { $0 = true } }
        for _ in 1...10 { try await threads.run { () } }
        threads.close()
    }

    @Test func `a look-up that fails is reported to all that waited`() async throws {
        let threads = BlockingThreads(name: "test", count: 1, waitingMax: 100)
        let lookup = known.lookup(on: threads)
        known.failure.withLock { $0 = .full }
        await withTaskGroup(of: Void.self) { group in
            for _ in 1...10 {
                group.addTask {
                    await #expect(throws: StorageError.full) { try await rights(lookup, "other") }
                }
            }
        }
        known.failure.withLock { $0 = nil }
        #expect(try await rights(lookup, "other") == nil)
        threads.close()
    }

    @Test func `a look-up that finds no room is told to come again, and later ones succeed`()
        async throws
    {
        let threads = BlockingThreads(name: "test", count: 1, waitingMax: 2)
        let lookup = known.lookup(on: threads)
        let gates = DispatchSemaphore(value: 0)
        for _ in 1...3 {
            try await until("a place") { threads.submit { gates.wait() } }
        }
        await #expect(throws: Busy.self) { try await rights(lookup, "other") }
        for _ in 1...3 { gates.signal() }
        try await until("the threads are free") { threads.waitingCount == 0 }
        #expect(try await rights(lookup, "other") == nil)
        threads.close()
    }
}
