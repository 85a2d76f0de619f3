// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import NIOCore
internal import NIOPosix
internal import Synchronization
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct PushHubTests {
    /// The key of an event that was encoded, and whether that was on an event loop.
    private struct Encoded: Equatable {
        var key: String
        var isOnLoop: Bool
    }

    private let storage: SQLiteServerStorage
    private let threads = BlockingThreads(name: "test", count: 1, waitingMax: 100)
    private let loop = MultiThreadedEventLoopGroup.singleton.any()
    private let rights = DeviceRights(
        reference: DeviceReference(account: Sample.account.id, id: Sample.device))
    private static let large = PropertyListValue.array(
        Array(repeating: .boolean(true), count: 116_000))

    init() throws { storage = try .inMemory() }

    /// Commits a write, and publishes it.
    private func publish(
        _ key: String, _ value: PropertyListValue, at time: Int64 = 500, to hub: PushHub
    ) throws {
        let write = Sample.record(key, value, at: time)
        let push = try #require(try storage.commit(Sample.push(write)))
        #expect(!push.writes.isEmpty)
        hub.publish([(Sample.store, push)], then: LoopWork())
    }

    private func hub(
        _ configure: (inout ServerSettings) -> Void = { _ in },
        _ encode: @escaping Event.Encoder
    ) -> PushHub {
        var settings = ServerSettings(dataFolder: "")
        configure(&settings)
        return PushHub(storage: storage, threads: threads, settings: settings, encode: encode)
    }

    private func subscribe(to hub: PushHub) throws -> Subscriber {
        let stream = EventStream(hub, count: 1, isShared: false, takesBinary: false, on: loop)
        stream.start { _ in }
        let subscriber = try hub.subscribe(rights, to: Sample.store, in: stream)
        hub.begin(subscriber, at: Sample.position(1))
        return subscriber
    }

    @Test func `a large event is encoded on no event loop, once for all, and in its turn`()
        async throws
    {
        let encoded = Mutex<[Encoded]>([])
        let hub = hub { changes, store, isBinary in
            let isOnLoop = MultiThreadedEventLoopGroup.currentEventLoop != nil
            encoded.withLock {
                $0.append(Encoded(key: changes.records[0].key.string, isOnLoop: isOnLoop))
            }
            return ServerSentEvent.push(changes, of: store, isBinary: isBinary)
        }
        try storage.commit(Sample.push(Sample.record("first", .integer(1), at: 400)))
        let subscribers = [try subscribe(to: hub), try subscribe(to: hub)]
        try publish("large", Self.large, to: hub)
        try publish("small", .integer(1), to: hub)
        try await until("both events") { hub.waitingBytes > 2 * 116_000 * 16 }
        try await until("the small one") { encoded.withLock { $0.count } == 2 }
        #expect(
            encoded.withLock { $0 } == [
                Encoded(key: "large", isOnLoop: false), Encoded(key: "small", isOnLoop: true),
            ])
        for subscriber in subscribers { loop.execute { subscriber.leave() } }
        try await until("no bytes") { hub.waitingBytes == 0 }
        threads.close()
    }

    @Test func `events that wait for one that is encoded have a bound`() async throws {
        let gate = DispatchSemaphore(value: 0)
        let hub = hub({ $0.constants.streamBufferBytesMax = 2 << 20 }) { changes, store, isBinary in
            if MultiThreadedEventLoopGroup.currentEventLoop == nil { gate.wait() }
            return ServerSentEvent.push(changes, of: store, isBinary: isBinary)
        }
        try storage.commit(Sample.push(Sample.record("first", .integer(1), at: 400)))
        let subscriber = try subscribe(to: hub)
        for time: Int64 in 501...502 { try publish("large", Self.large, at: time, to: hub) }
        #expect(hub.count == 1 && (2_000_000...2 << 20).contains(hub.waitingBytes))
        for time: Int64 in 503...504 { try publish("large", Self.large, at: time, to: hub) }
        // It is told to pull again.
        #expect(hub.count == 0)
        // The one that is being encoded still takes its memory.
        gate.signal()
        try await until("no bytes") { hub.waitingBytes == 0 }
        loop.execute { subscriber.leave() }
        threads.close()
    }
}
