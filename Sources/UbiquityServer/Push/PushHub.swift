// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Knows the subscribers of each store, and sends them what was committed, by this node or others;
/// ``StoreFeed`` decides when.
///
/// State: `state`, guarded by its lock. Events are handed to the subscribers' loops under it, so
/// that they are in order.
final class PushHub: Sendable {
    /// The subscribers of a store.
    private struct Group {
        /// The number of its first subscriber, which tells it from an earlier group of the same
        /// store.
        let number: UInt64
        var subscribers: [Subscriber] = []
        var feed = StoreFeed()
    }

    private struct State {
        var groups: [StoreReference: Group] = [:]
        var lastNumber: UInt64 = 0
        var isClosed = false
        /// The storage's history; nil if it is not known yet.
        var history: UInt64?
        /// Up to this number, subscribers may follow another history.
        var lastOfOtherHistory: UInt64 = 0
    }

    private let state = Mutex(State())
    private let storage: any ServerStorage
    private let threads: BlockingThreads
    private let settings: ServerSettings
    private let edge: Edge?
    private let waiting: ByteBudget
    private let shares: AccountShares

    /// - Parameter threads: For reading what others committed.
    init(
        storage: any ServerStorage, threads: BlockingThreads, settings: ServerSettings,
        edge: Edge? = nil
    ) {
        self.storage = storage
        self.threads = threads
        self.settings = settings
        self.edge = edge
        waiting = ByteBudget(max: settings.listenersBytesMax)
        shares = AccountShares(
            of: waiting, placesMax: settings.listenersPerAccountMax,
            bytesMin: settings.listenerBufferBytesMax)
    }

    /// The bytes that wait for all subscribers.
    var waitingBytes: Int { waiting.bytes }
    var count: Int { state.withLock { $0.groups.values.reduce(0) { $0 + $1.subscribers.count } } }
    var bytesPerListenerMax: Int { settings.listenerBufferBytesMax }

    /// The time that a slow listener has.
    var slowMilliseconds: Int64 { settings.slowSecondsMax * 1_000 }
    /// The stores with subscribers.
    var stores: [StoreReference] { state.withLock { Array($0.groups.keys) } }
    /// The devices with subscribers.
    var devices: Set<DeviceReference> { Set(subscribers { _ in true }.lazy.map(\.device)) }

    // MARK: - Subscribers

    /// Subscribes a subscriber to everything that is committed from now on. Call
    /// ``begin(_:at:)`` when it has read the store.
    /// - Throws: ``HubError``.
    /// - Parameters:
    ///   - takesBinary: As ``Subscriber/takesBinary``.
    ///   - loop: The connection's.
    func subscribe(
        _ rights: DeviceRights, to store: StoreReference, takesBinary: Bool = false,
        on loop: any EventLoop
    ) throws(HubError) -> Subscriber {
        let permit: AccountShares.Permit
        do { permit = try shares.take(rights) } catch { throw .tooMany }
        return try state.withLock { state throws(HubError) in
            guard !state.isClosed else { throw .closed }
            state.lastNumber += 1
            let subscriber = Subscriber(
                number: state.lastNumber, rights: rights, store: store,
                takesBinary: takesBinary, permit: permit, hub: self, on: loop)
            state.groups[store, default: Group(number: subscriber.number)].subscribers
                .append(subscriber)
            return subscriber
        }
    }

    /// A subscriber has read its store as of this position.
    func begin(_ subscriber: Subscriber, at position: Position) {
        advance(subscriber.store) { $0.begin(at: position) }
    }

    /// Does nothing if it is not subscribed any more.
    func unsubscribe(_ subscriber: Subscriber) {
        state.withLock { state in
            state.groups[subscriber.store]?.subscribers.removeAll { $0 === subscriber }
            if state.groups[subscriber.store]?.subscribers.isEmpty == true {
                state.groups[subscriber.store] = nil
            }
        }
    }

    // MARK: - Changes

    /// A push that was committed to a store.
    typealias Commit = (store: StoreReference, push: CommittedPush)

    /// Hands what this node has committed to the subscribers' loops. Must be called in the order of
    /// each store's revisions.
    /// - Parameter answers: What the loops do afterwards.
    func publish(_ commits: [Commit], then answers: LoopWork) {
        var work = LoopWork()
        var reads: [Read] = []
        state.withLock { state in
            for (store, push) in commits where !push.writes.isEmpty {
                guard let step = state.groups[store]?.feed.commit(push) else {
                    continue
                }
                let event = Event(push.changes, revision: push.position.revision)
                take(step, of: store, event, &state, &work, &reads)
            }
            work.add(answers)
            work.submit()
        }
        reads.forEach(start)
    }

    /// Somebody says that a store has reached this position.
    func hear(of position: Position, in store: StoreReference) {
        advance(store) { $0.hear(of: position) }
    }

    /// The storage goes on in this history. If it is another one than before, all subscribers must
    /// end, see ``StoreFeed``.
    func follow(_ history: UInt64?) {
        state.withLock { state in
            if state.history != nil, state.history != history {
                state.lastOfOtherHistory = state.lastNumber
            }
            state.history = history
        }
    }

    /// Ends the subscribers of another history whose turn it is, so that not all of a server's
    /// devices come back at once.
    func endOfOtherHistory(second: Int) {
        let last = state.withLock(\.lastOfOtherHistory)
        guard last > 0 else { return }
        let turn = UInt64(second) % Self.endingSeconds
        end { $0.number <= last && $0.number % Self.endingSeconds == turn }
    }

    private static let endingSeconds: UInt64 = 5

    /// A read of what was committed by others.
    private struct Read: Sendable {
        var store: StoreReference
        var group: UInt64
        var since: Position
    }

    private func advance(_ store: StoreReference, _ advance: (inout StoreFeed) -> StoreFeed.Step) {
        var reads: [Read] = []
        state.withLock { state in
            guard state.groups[store] != nil else { return }
            let step = advance(&state.groups[store]!.feed)
            var work = LoopWork()
            take(step, of: store, nil, &state, &work, &reads)
            work.submit()
        }
        reads.forEach(start)
    }

    /// - Parameter event: The event to publish if the step says so.
    private func take(
        _ step: StoreFeed.Step, of store: StoreReference, _ event: Event?, _ state: inout State,
        _ work: inout LoopWork, _ reads: inout [Read]
    ) {
        guard let group = state.groups[store] else { return }
        switch step {
        case .nothing: break
        case .publish:
            guard let event else { break }
            offer(event, to: group.subscribers, &work)
        case .read(let since):
            reads.append(Read(store: store, group: group.number, since: since))
        case .restart:
            state.groups[store] = nil
            for subscriber in group.subscribers {
                work.add(on: subscriber.loop) { subscriber.end(.closed) }
            }
        }
    }

    private func offer(_ event: Event, to subscribers: [Subscriber], _ work: inout LoopWork) {
        for subscriber in subscribers { work.add(on: subscriber.loop) { subscriber.offer(event) } }
    }

    private func start(_ read: Read) {
        threads.run(slicesFor: read.store.account) { [self] in
            Optional.some(try changes(read))
        } then: { [self] result in
            // Nobody may miss what could not be read.
            finish(read, (try? result.get()) ?? nil)
        }
    }

    private typealias Changes = (set: ChangeSet, position: Position)

    /// - Returns: Nil if the subscribers must begin anew.
    private func changes(_ read: Read) throws -> Changes? {
        let stored = try storage.read(read.store, since: read.since)
        guard case .changes(let records, let position, false, let horizon) = stored else {
            return nil
        }
        let set = ChangeSet(
            records: try records.map { try $0.record() }, cursor: position.cursor,
            serverMilliseconds: settings.clock.now(), isWhole: false, horizon: horizon)
        return (set, position)
    }

    private func finish(_ read: Read, _ changes: Changes?) {
        var reads: [Read] = []
        state.withLock { state in
            guard let group = state.groups[read.store], group.number == read.group else { return }
            var work = LoopWork()
            if let changes, !changes.set.records.isEmpty {
                let event = Event(changes.set, revision: changes.position.revision)
                offer(event, to: group.subscribers, &work)
            }
            let step = state.groups[read.store]!.feed.finish(at: changes?.position)
            take(step, of: read.store, nil, &state, &work, &reads)
            work.submit()
        }
        reads.forEach(start)
    }

    // MARK: - All of them

    /// Sends keep-alives to the subscribers whose turn it is, so that not all are in the same
    /// second.
    /// - Parameter tick: The number of the second.
    func keepAlive(tick: Int) {
        let interval = UInt64(max(1, settings.keepAliveSeconds))
        let turn = UInt64(tick) % interval
        var work = LoopWork()
        for subscriber in subscribers(where: { $0.number % interval == turn }) {
            work.add(on: subscriber.loop) { subscriber.keepAlive() }
        }
        work.submit()
    }

    /// Records that an event was passed to a subscriber's connection.
    func delivered(_ event: Event) {
        edge?.metrics.delivered(seconds: event.committed.secondsAgo)
    }

    func noteOverflow() { edge?.note(.listenerOverflow) }

    /// - Parameter isOver: Must not use the hub.
    func end(where isOver: (Subscriber) -> Bool) {
        var work = LoopWork()
        for subscriber in subscribers(where: isOver) {
            work.add(on: subscriber.loop) { subscriber.end(.closed) }
        }
        work.submit()
    }

    /// Ends all subscribers, and refuses new ones.
    func close() {
        state.withLock { $0.isClosed = true }
        end { _ in true }
    }

    /// Looks at all of them, each second several times, so it copies only those that it returns.
    private func subscribers(where isMeant: (Subscriber) -> Bool) -> [Subscriber] {
        state.withLock { state in
            var found: [Subscriber] = []
            for group in state.groups.values {
                for subscriber in group.subscribers where isMeant(subscriber) {
                    found.append(subscriber)
                }
            }
            return found
        }
    }
}

enum HubError: Error, Hashable, Sendable {
    case closed
    case tooMany
}
