// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// Vector 13, the story that everyone tells: a game's level 13 on one device, level 1 on another.
extension EndToEndTests.ContractTests {
    @Test func `level 1 of a device that has synced before wins, and the app writes 13 again`()
        async throws
    {
        try await levelStory(.serverWins, hasSyncedBefore: true)
    }

    @Test func `if timestamps decide, a newly installed device can win`() async throws {
        try await levelStory(.timestamps, hasSyncedBefore: false)
    }

    private func levelStory(
        _ firstSync: UbiquityConfiguration.FirstSync, hasSyncedBefore: Bool
    ) async throws {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let a = try Device(home: await server.newHome("a", isFirst: true))
            defer { a.close() }
            let homeB = try await server.newHome("b")
            if hasSyncedBefore {
                let b = try Device(home: homeB) { $0.firstSync = firstSync }
                try await b.store.synchronizeNow()
                b.close()
            }
            a.store.set(Int64(13), forKey: "level")
            try await a.store.synchronizeNow()
            let observerA = Observer(a.store) { Self.keepLevel(13, in: a.store, $0) }
            try await server.stop()
            // B's write must be the later one, also by clocks that were measured on a busy machine: the
            // measurement is off by up to half a round trip.
            try await Task.sleep(for: .seconds(30))
            let b = try Device(home: homeB) { $0.firstSync = firstSync }
            defer { b.close() }
            let observerB = Observer(b.store)
            b.store.set(Int64(1), forKey: "level")
            #expect(b.store.synchronize())
            try await server.start()
            try await until("a's notification of level 1") { !observerA.all.isEmpty }
            try await agreement(a, b) { $0.values.contains(.integer(13)) }
            #expect(
                try await posted(observerA, by: b) == [.init(0, ["level"], ["level": .integer(1)])])
            #expect(
                try await posted(observerB, by: a) == [.init(0, ["level"], ["level": .integer(13)])]
            )
            #expect([a.integer("level"), b.integer("level")] == [13, 13])
        }
    }

    /// As apps do it: what the store has is compared with what the app knows of its own.
    private static func keepLevel(
        _ own: Int64, in store: UbiquitousKeyValueStore, _ posted: Observer.Posted
    ) {
        guard posted.keys?.contains("level") == true, store.longLong(forKey: "level") < own else {
            return
        }
        store.set(own, forKey: "level")
    }
}
