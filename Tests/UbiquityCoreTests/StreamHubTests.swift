// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The streams of a node.
struct StreamHubTests {
    private typealias Hub = StreamHub<String, Subscriber, Event>

    private final class Subscriber: HubSubscriber {
        let number: UInt64
        let turn: UInt64
        init(number: UInt64, turn: UInt64? = nil) {
            (self.number, self.turn) = (number, turn ?? number)
        }
    }

    private struct Event: HubEvent {
        var name: String
        var bytes = 10
        var isLarge = false
        var hasRoom = true
        func reserve() -> Bool { hasRoom }
    }

    private var hub = Hub(unsentBytesMax: 100)

    private func at(_ revision: Int64) -> Position { Position(epoch: 1, revision: revision) }

    private func push(_ revision: Int64, isEmpty: Bool = false) throws -> CommittedPush {
        let stamp = Stamp(HybridTimestamp(milliseconds: 1, counter: 0), DeviceID(rawValue: 1))
        let write = Record(key: try Key("key"), content: .deleted, stamp: stamp)
        return CommittedPush(
            writes: isEmpty ? [] : [write], folded: [], span: nil, results: [],
            previous: at(revision - 1), position: at(revision), serverMilliseconds: 0,
            horizon: .zero, deletions: 0, foldedCount: 0, history: HistoryChange(at: .start))
    }

    private mutating func subscribe(to store: String = "store") throws -> Subscriber {
        try #require(hub.subscribe(to: store) { Subscriber(number: $0) })
    }

    /// What is sent, begun and ended, in order.
    private func text(_ actions: [Hub.Action]) -> [String] {
        actions.map { action in
            switch action {
            case .send(let event, let to): "\(event.name) to \(to.map(\.number))"
            case .end(let of, let end): "\(end) \(of.map(\.number))"
            case .start(let job):
                switch job.kind {
                case .read(let since): "read since \(since.revision)"
                case .encode(let event): "encode \(event.name)"
                }
            }
        }
    }

    private func job(_ actions: [Hub.Action]) throws -> Hub.Job {
        for case .start(let job) in actions { return job }
        throw NoJob()
    }

    private struct NoJob: Error {}

    private mutating func publish(_ revision: Int64, _ event: Event) throws -> [Hub.Action] {
        hub.publish(try push(revision), to: "store") { event }
    }

    @Test
    mutating func `a push is sent to all subscribers of its store, unless it changes nothing`()
        throws
    {
        for _ in 1...2 { _ = try subscribe() }
        _ = try subscribe(to: "other")
        #expect(hub.begin("store", at: at(1)).isEmpty)
        #expect(text(try publish(2, Event(name: "a"))) == ["a to [1, 2]"])
        #expect(hub.publish(try push(3, isEmpty: true), to: "store") { Event(name: "b") }.isEmpty)
        #expect(hub.publish(try push(2), to: "nobody's") { Event(name: "c") }.isEmpty)
    }

    @Test mutating func `what others committed is read, and what came meanwhile follows`() throws {
        let subscriber = try subscribe()
        _ = hub.begin("store", at: at(1))
        let reading = hub.hear(of: at(3), in: "store")
        #expect(text(reading) == ["read since 1"])
        #expect(try publish(4, Event(name: "own")).isEmpty)
        let next = hub.finish(try job(reading), read: Event(name: "theirs"), at: at(3))
        #expect(text(next) == ["theirs to [1]", "read since 3"])
        #expect(text(hub.finish(try job(next), read: nil, at: nil)) == ["restart [1]"])
        // It is not subscribed any more.
        #expect(hub.stores.isEmpty)
        hub.unsubscribe(subscriber, from: "store")
    }

    @Test mutating func `what an earlier group of the store began does not count`() throws {
        let first = try subscribe()
        _ = hub.begin("store", at: at(1))
        let encoding = try job(try publish(2, Event(name: "large", isLarge: true)))
        let reading = try job(hub.hear(of: at(4), in: "store"))
        hub.unsubscribe(first, from: "store")
        _ = try subscribe()
        #expect(hub.finish(reading, read: Event(name: "old"), at: at(3)).isEmpty)
        #expect(hub.finish(encoding, isEncoded: true).isEmpty)
    }

    @Test mutating func `no event overtakes a large one that is being encoded`() throws {
        _ = try subscribe()
        _ = hub.begin("store", at: at(1))
        let first = try publish(2, Event(name: "large", isLarge: true))
        #expect(text(first) == ["encode large"])
        #expect(try publish(3, Event(name: "small")).isEmpty)
        #expect(try publish(4, Event(name: "next", isLarge: true)).isEmpty)
        #expect(try publish(5, Event(name: "last")).isEmpty)
        let second = hub.finish(try job(first), isEncoded: true)
        #expect(text(second) == ["large to [1]", "small to [1]", "encode next"])
        let third = hub.finish(try job(second), isEncoded: true)
        #expect(text(third) == ["next to [1]", "last to [1]"])
        #expect(text(try publish(6, Event(name: "free"))) == ["free to [1]"])
    }

    @Test mutating func `what waits to be encoded is bounded, but for one event`() throws {
        _ = try subscribe()
        _ = hub.begin("store", at: at(1))
        _ = try publish(2, Event(name: "large", bytes: 101, isLarge: true))
        #expect(text(try publish(3, Event(name: "small"))) == ["overflow [1]"])
        #expect(hub.stores.isEmpty)
    }

    @Test mutating func `streams end if there is no room for an event, or it is not encoded`()
        throws
    {
        _ = try subscribe()
        _ = hub.begin("store", at: at(1))
        let event = Event(name: "large", isLarge: true, hasRoom: false)
        #expect(text(try publish(2, event)) == ["overflow [1]"])
        _ = try subscribe()
        _ = hub.begin("store", at: at(2))
        let encoding = try job(try publish(3, Event(name: "large", isLarge: true)))
        #expect(text(hub.finish(encoding, isEncoded: false)) == ["overflow [2]"])
    }

    @Test mutating func `subscribers of another history end within some seconds, in turns`() throws
    {
        hub.follow(7)
        for _ in 1...10 { _ = try subscribe() }
        hub.follow(7)
        #expect((0..<5).allSatisfy { hub.endOfOtherHistory(second: $0).isEmpty })
        hub.follow(8)
        let newer = try subscribe()
        let turns = (0..<5).map { hub.endOfOtherHistory(second: $0).map(\.number).sorted() }
        #expect(turns == [[5, 10], [1, 6], [2, 7], [3, 8], [4, 9]])
        #expect(newer.number == 11)
    }

    @Test mutating func `the subscribers that share a stream end together`() throws {
        hub.follow(7)
        for store in ["a", "b", "c"] {
            _ = try #require(hub.subscribe(to: store) { Subscriber(number: $0, turn: 1) })
        }
        hub.follow(8)
        let turns = (0..<5).map { hub.endOfOtherHistory(second: $0).map(\.number).sorted() }
        #expect(turns == [[], [1, 2, 3], [], [], []])
    }

    @Test mutating func `a closed hub takes nobody`() {
        hub.close()
        #expect(hub.subscribe(to: "store") { Subscriber(number: $0) } == nil)
    }
}

/// The events of one stream.
struct SendQueueTests {
    private var queue = SendQueue<String>(bytesMax: 10)
    private var reserved = 0

    private mutating func offer(
        _ event: String, _ revision: Int64, canSend: Bool = true, bytes: Int = 4
    ) -> SendQueue<String>.Offer {
        queue.offer(event, revision: revision, canSend: canSend, bytes: { bytes }) {
            reserved += $0
            return reserved <= 20
        }
    }

    private mutating func next() -> String? { queue.next { reserved -= $0 } }

    private func start(_ revision: Int64) -> StreamStart {
        StreamStart(Position(epoch: 1, revision: revision).cursor)
    }

    @Test mutating func `what comes while the store is read waits, unless it was read too`() {
        #expect(offer("a", 2) == .waits)
        #expect(offer("b", 3) == .waits)
        #expect(next() == nil)
        queue.begin(start(2))
        #expect(offer("old", 1) == .dropped)
        #expect(queue.open() && next() == "b" && next() == nil && reserved == 0)
        #expect(offer("c", 4) == .send)
    }

    @Test mutating func `no event overtakes one that waits for the connection`() {
        queue.begin(start(0))
        #expect(queue.open() && offer("a", 1, canSend: false) == .waits)
        #expect(offer("b", 2) == .waits)
        #expect(next() == "a" && next() == "b" && queue.isEmpty)
    }

    @Test mutating func `what waits is bounded, but for one event, and by the budget of all`() {
        #expect(offer("a", 1, bytes: 11) == .waits)
        #expect(offer("b", 2, bytes: 0) == .overflow)
        queue = SendQueue(bytesMax: 100)
        #expect(offer("a", 1, bytes: 10) == .overflow)
    }

    @Test mutating func `an end drops what waits, once`() {
        #expect(offer("a", 1) == .waits)
        #expect(queue.end { reserved -= $0 } && reserved == 0)
        #expect(!queue.end { reserved -= $0 })
        #expect(!queue.open() && offer("b", 2) == .dropped && next() == nil && reserved == 0)
    }
}
