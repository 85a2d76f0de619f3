// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import ProcessHarness
internal import Testing
internal import Ubiquity
internal import UbiquityCore

/// Tests of notifications, and of what an app reads when it gets one.
extension EndToEndTests.ContractTests {
    /// Vector 10.
    @Test
    func `an own write posts nothing, a peer's one notification, its batch of many keys one`()
        async throws
    {
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            let (observerA, observerB) = (Observer(a.store), Observer(b.store))
            a.store.set("value", forKey: "a")
            try await until("the news of one") { observerB.all.count == 1 }
            let keys = (10...29).map { "key \($0)" }
            try a.store.performBatch { batch in
                for key in keys { try batch.set(key, forKey: key) }
            }
            try await until("the news of many") { observerB.all.count == 2 }
            let values = Dictionary(
                uniqueKeysWithValues: keys.map { ($0, PropertyListValue.string(ExactString($0))) })
            #expect(
                try await posted(observerB, by: a) == [
                    .init(0, ["a"], ["a": .string("value")]), .init(0, keys, values),
                ])
            #expect(try await posted(observerA, by: b) == [])
        }
    }

    /// Vector 11.
    @Test func `a peer's deletion is notified with its key, and the object is nil`() async throws {
        try await withTwoDevices { pair in
            let (a, b) = (pair.a, pair.b)
            let observer = Observer(b.store)
            a.store.set("value", forKey: "a")
            try await until("the value") { observer.all.count == 1 }
            a.store.removeObject(forKey: "a")
            try await until("the news") { observer.all.count == 2 }
            #expect(b.store.object(forKey: "a") == nil)
            #expect(
                try await posted(observer, by: a) == [
                    .init(0, ["a"], ["a": .string("value")]), .init(0, ["a"], [:]),
                ])
        }
    }

    /// Vector 12.
    @Test func `a first sync takes what the server has, uploads the rest, and notifies once`()
        async throws
    {
        try await onStage { stage in
            let server = try await ServerProcess.started(stage)
            let a = try Device(home: await server.newHome("a", isFirst: true))
            let b = try Device(home: stage.path("home-b"))
            defer {
                a.close()
                b.close()
            }
            a.store.set(Int64(13), forKey: "a")
            a.store.set(Int64(3), forKey: "c")
            try await a.store.synchronizeNow()
            b.store.set(Int64(1), forKey: "a")
            b.store.set(Int64(2), forKey: "b")
            let (observerA, observerB) = (Observer(a.store), Observer(b.store))
            #expect(!b.store.status.isInitialSyncComplete)
            _ = try await server.newHome("b")
            try await b.store.initialSync()
            try await agreement(a, b) { $0.count == 3 }
            #expect([b.integer("a"), b.integer("b"), b.integer("c")] == [13, 2, 3])
            #expect(
                try await posted(observerB, by: a) == [
                    .init(
                        NSUbiquitousKeyValueStoreInitialSyncChange, ["a", "c"],
                        ["a": .integer(13), "c": .integer(3)])
                ])
            #expect(
                try await posted(observerA, by: b) == [.init(0, ["b"], ["b": .integer(2)])])
        }
    }
}
