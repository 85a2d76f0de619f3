// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The streams of a node: carries out ``StreamHub`` in virtual time.
final class VirtualHub {
    private typealias Hub = StreamHub<StoreReference, Subscriber, Event>

    private unowned let node: VirtualNode
    /// Whether other nodes write to the database.
    private let isShared: Bool
    private var hub = Hub(unsentBytesMax: eventBytesMax)
    /// Whether a comparison is due.
    private var isComparing = false
    /// The database's history, and the positions of the last comparison.
    private var history: DatabaseHistory
    private var compared: [Position] = []

    /// The interval at which the positions of stores with streams are compared, since hints may be
    /// lost.
    private static let comparisonMilliseconds: Int64 = 4_000
    /// So few that a slow stream soon overflows.
    private static let eventBytesMax = 700
    /// The longest time for which a stream takes nothing, shorter than a client's patience.
    private static let stallMillisecondsMax: Int64 = 20_000

    init(node: VirtualNode, isShared: Bool) {
        self.node = node
        self.isShared = isShared
        history = node.database.name
        hub.follow(history.name)
    }

    private var world: any VirtualWorld { node.world }

    // MARK: - Streams

    /// A stream with its queue. Used by one thread, as all of the simulation is.
    private final class Subscriber: HubSubscriber, @unchecked Sendable {
        let number: UInt64
        let stream: VirtualStream
        /// Whether its connection takes nothing at present.
        var isStalled = false { didSet { advance() } }
        private var turns = StreamTurns(count: 1)
        private var queue = SendQueue<ChangeSet>(bytesMax: eventBytesMax)
        /// The beginning that is still to be sent.
        private var start: [StreamMessage] = []

        init(_ stream: VirtualStream, number: UInt64) {
            (self.stream, self.number) = (stream, number)
            _ = turns.next(canSend: false)
        }

        /// - Returns: Whether the stream goes on.
        func offer(_ changes: ChangeSet) -> Bool {
            let offer = queue.offer(
                changes, revision: Position(changes.cursor)?.revision ?? 0,
                canSend: !isStalled && turns.isEmpty, bytes: { changes.virtualBytes },
                reserve: { _ in true })
            switch offer {
            case .send: stream.send(.changes(changes))
            case .waits: if queue.isOpen { turns.wait(0) }
            case .dropped, .overflow: break
            }
            return offer != .overflow
        }

        /// - Parameter isResumed: Whether the device named a cursor. If not, the changes are the whole
        ///   store.
        func begin(with changes: ChangeSet, isResumed: Bool, _ config: ServerConfig) {
            guard !queue.hasEnded else { return }
            queue.begin(StreamStart(changes.cursor))
            let isSilent = isResumed && changes.records.isEmpty
            start = (isSilent ? [] : [.changes(changes)]) + [.ready(changes.cursor, config)]
            turns.wait(0)
            advance()
        }

        private func advance() {
            // A connection stalls only after what a store begins with.
            while case .send = turns.next(canSend: !isStalled || !queue.isOpen) {
                if !start.isEmpty {
                    stream.send(start.removeFirst())
                    continue
                }
                if queue.isOpen {
                    if let changes = queue.next(release: { _ in }) {
                        stream.send(.changes(changes))
                    }
                } else {
                    _ = queue.open()
                }
                turns.endTurn(queue.isEmpty ? .nothing : .more)
            }
        }

        func end(_ end: StreamEnd) {
            guard queue.end(release: { _ in }) else { return }
            start = []
            if end == .overflow { stream.send(.resync) }
            stream.breakOff(nil)
        }
    }

    func subscribe(_ stream: VirtualStream, since cursor: Cursor?, isSaved: Bool) {
        let subscriber = hub.subscribe(to: stream.store) { Subscriber(stream, number: $0) }
        guard let subscriber else { return }
        node.after(node.flight) { [self] in
            if isSubscribed(stream) { begin(subscriber, since: cursor, isSaved) }
        }
    }

    private func begin(_ subscriber: Subscriber, since cursor: Cursor?, _ isSaved: Bool) {
        let stream = subscriber.stream
        do throws(LinkFailure) {
            let changes = try node.read(
                stream.store, since: cursor, isSaved: isSaved, by: stream.device)
            let config = node.config
            node.after(node.flight) { [self] in
                guard isSubscribed(stream) else { return }
                subscriber.begin(with: changes, isResumed: cursor != nil, config)
                guard let position = Position(changes.cursor) else { return }
                carryOut(hub.begin(stream.store, at: position))
                compareSoon()
            }
        } catch {
            unsubscribe(stream)
            stream.breakOff(error)
        }
    }

    private func subscriber(of stream: VirtualStream) -> Subscriber? {
        hub.subscribers { $0.stream === stream }.first
    }

    private func isSubscribed(_ stream: VirtualStream) -> Bool { subscriber(of: stream) != nil }

    func unsubscribe(_ stream: VirtualStream) {
        guard let subscriber = subscriber(of: stream) else { return }
        hub.unsubscribe(subscriber, from: stream.store)
    }

    func streamCount(of account: Int) -> Int {
        hub.subscribers { $0.stream.store.account == account }.count
    }

    /// All of them, the oldest first.
    private var subscribers: [Subscriber] {
        hub.subscribers { _ in true }.sorted { $0.number < $1.number }
    }

    /// The node has ended.
    func lose() {
        let all = subscribers
        hub = Hub(unsentBytesMax: Self.eventBytesMax)
        isComparing = false
        for subscriber in all { subscriber.stream.lose() }
    }

    /// The node has started, and knows nothing.
    func start() {
        history = node.database.name
        hub.follow(history.name)
    }

    func goSilent() { for subscriber in subscribers { subscriber.stream.goSilent() } }

    /// Some devices read too slowly.
    func overflow() { end(subscribers.filter { _ in world.chance.coin() }, .overflow) }

    func end(where isMeant: (StoreReference) -> Bool) {
        end(subscribers.filter { isMeant($0.stream.store) }, .closed)
    }

    /// A device may read nothing for a while.
    private func stall(_ subscriber: Subscriber) {
        guard subscriber.stream.listener.line.strikes(.overflow) else { return }
        subscriber.isStalled = true
        node.after(world.chance.int64(0...Self.stallMillisecondsMax)) {
            subscriber.isStalled = false
        }
    }

    // MARK: - Changes

    /// Changes, and the time to encode them.
    private struct Event: HubEvent {
        let changes: ChangeSet
        /// Whether the budget of all has room for it.
        let hasRoom: Bool

        var bytes: Int { changes.virtualBytes }
        var isLarge: Bool { bytes > 400 }
        func reserve() -> Bool { hasRoom }
    }

    private func event(_ changes: ChangeSet) -> Event {
        Event(changes: changes, hasRoom: !world.chance.perMille(10))
    }

    /// The node has committed a push.
    func publish(_ push: CommittedPush, of store: StoreReference) {
        carryOut(hub.publish(push, to: store) { event(push.changes) })
    }

    func hear(of position: Position, in store: StoreReference) {
        carryOut(hub.hear(of: position, in: store))
    }

    private func carryOut(_ actions: [Hub.Action]) {
        for action in actions {
            switch action {
            case .send(let event, let subscribers):
                for subscriber in subscribers {
                    stall(subscriber)
                    if !subscriber.offer(event.changes) { end([subscriber], .overflow) }
                }
            case .end(let subscribers, let end): self.end(subscribers, end)
            case .start(let job): start(job)
            }
        }
    }

    private func end(_ subscribers: [Subscriber], _ end: StreamEnd) {
        for subscriber in subscribers {
            hub.unsubscribe(subscriber, from: subscriber.stream.store)
            subscriber.end(end)
        }
    }

    /// Does a job, which takes a while: the database reads what others committed, and answers; or an
    /// event is encoded.
    private func start(_ job: Hub.Job) {
        node.after(node.flight) { [self] in
            guard case .read(let position) = job.kind else {
                return carryOut(hub.finish(job, isEncoded: world.now >= node.busyUntil))
            }
            let changes = try? node.changes(of: job.store, since: position.cursor)
            node.after(node.flight) { [self] in
                let isEmpty = changes?.records.isEmpty ?? true
                carryOut(
                    hub.finish(
                        job, read: isEmpty ? nil : changes.map(event),
                        at: changes.flatMap { Position($0.cursor) }))
            }
        }
    }

    // MARK: - Comparisons

    /// Compares positions at the next occasion. There is one every few seconds; those at which
    /// nothing can have changed are left out, since they would only take up steps.
    func compareSoon() {
        guard isShared, !isComparing else { return }
        if hub.stores.isEmpty { return start() }
        isComparing = true
        let interval = Self.comparisonMilliseconds
        node.after(interval - world.now % interval) { [self] in
            isComparing = false
            compare()
        }
    }

    private func compare() {
        guard node.database.isRunning else { return compareSoon() }
        let history = node.database.name
        let stores = hub.stores.sorted()
        let positions = stores.map { node.database.position(of: $0) }
        node.after(node.flight) { [self] in
            follow(history)
            if positions != compared { compareSoon() }
            compared = positions
            for (store, position) in zip(stores, positions) { hear(of: position, in: store) }
        }
    }

    /// The database goes on in this history.
    private func follow(_ history: DatabaseHistory) {
        guard history != self.history else { return }
        self.history = history
        hub.follow(history.name)
        for second in 1...Int(Hub.endingSeconds) {
            node.after(Int64(second) * 1_000) { [self] in
                let over = hub.endOfOtherHistory(second: second)
                end(over.sorted { $0.number < $1.number }, .closed)
            }
        }
    }
}
