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
        /// A large event that is being encoded, and those after it, which must not overtake it.
        var unsent: [Unsent] = []
    }

    private struct Unsent {
        let event: Event
        /// Its part of the budget.
        let permit: AccountShares.Permit
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
    /// Of the same budget, for what is not encoded yet.
    private let unsentShares: AccountShares
    private let encode: Event.Encoder

    /// - Parameters:
    ///   - threads: For reading what others committed, and for encoding what is large.
    ///   - encode: Makes the text of an event.
    init(
        storage: any ServerStorage, threads: BlockingThreads, settings: ServerSettings,
        edge: Edge? = nil,
        encode: @escaping Event.Encoder = { ServerSentEvent.push($0, isBinary: $1) }
    ) {
        self.encode = encode
        self.storage = storage
        self.threads = threads
        self.settings = settings
        self.edge = edge
        waiting = ByteBudget(max: settings.streamsBytesMax)
        shares = AccountShares(
            of: waiting, placesMax: settings.streamsPerAccountMax,
            bytesMin: settings.constants.streamBufferBytesMax)
        unsentShares = AccountShares(
            of: waiting, placesMax: .max, bytesMin: settings.constants.streamBufferBytesMax)
    }

    /// The bytes that wait for all subscribers, or to be encoded for them.
    var waitingBytes: Int { waiting.bytes }
    var count: Int { state.withLock { $0.groups.values.reduce(0) { $0 + $1.subscribers.count } } }
    var bytesPerStreamMax: Int { settings.constants.streamBufferBytesMax }

    /// The time that a slow subscriber has.
    var slowMilliseconds: Int64 { settings.constants.slowSeconds * 1_000 }
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
        var jobs: [Job] = []
        state.withLock { state in
            for (store, push) in commits where !push.writes.isEmpty {
                guard let step = state.groups[store]?.feed.commit(push) else {
                    continue
                }
                let event = Event(push.changes, revision: push.position.revision, encode)
                take(step, of: store, event, &state, &work, &jobs)
            }
            work.add(answers)
            work.submit()
        }
        jobs.forEach(start)
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

    /// What is done on the threads for a group.
    private struct Job: Sendable {
        enum Kind: Sendable {
            /// Reads what was committed by others since then.
            case read(since: Position)
            /// Encodes a large event.
            case encode(Event)
        }

        var store: StoreReference
        var group: UInt64
        var kind: Kind
    }

    private func advance(_ store: StoreReference, _ advance: (inout StoreFeed) -> StoreFeed.Step) {
        var jobs: [Job] = []
        state.withLock { state in
            guard state.groups[store] != nil else { return }
            let step = advance(&state.groups[store]!.feed)
            var work = LoopWork()
            take(step, of: store, nil, &state, &work, &jobs)
            work.submit()
        }
        jobs.forEach(start)
    }

    /// - Parameter event: The event to publish if the step says so.
    private func take(
        _ step: StoreFeed.Step, of store: StoreReference, _ event: Event?, _ state: inout State,
        _ work: inout LoopWork, _ jobs: inout [Job]
    ) {
        guard let number = state.groups[store]?.number else { return }
        switch step {
        case .nothing: break
        case .publish:
            guard let event else { break }
            offer(event, of: store, &state, &work, &jobs)
        case .read(let since):
            jobs.append(Job(store: store, group: number, kind: .read(since: since)))
        case .restart: end(store, .closed, &state, &work)
        }
    }

    /// Ends all subscribers of a store.
    private func end(
        _ store: StoreReference, _ end: Subscriber.End, _ state: inout State,
        _ work: inout LoopWork
    ) {
        guard let group = state.groups.removeValue(forKey: store) else { return }
        for subscriber in group.subscribers {
            work.add(on: subscriber.loop) { subscriber.end(end) }
        }
    }

    /// Hands an event to the subscribers' loops, or lets it wait until it, or one before it, is encoded.
    /// What waits is bounded as for one subscriber.
    private func offer(
        _ event: Event, of store: StoreReference, _ state: inout State, _ work: inout LoopWork,
        _ jobs: inout [Job]
    ) {
        guard let unsent = state.groups[store]?.unsent else { return }
        guard event.isLarge || !unsent.isEmpty else {
            return send(event, to: state.groups[store]?.subscribers ?? [], &work)
        }
        let bytes = unsent.reduce(event.bytes) { $0 + $1.event.bytes }
        guard unsent.isEmpty || bytes <= bytesPerStreamMax,
            let permit = try? unsentShares.take(store.account), permit.take(event.bytes)
        else {
            noteOverflow()
            return end(store, .overflow, &state, &work)
        }
        state.groups[store]?.unsent.append(Unsent(event: event, permit: permit))
        if unsent.isEmpty { sendReady(of: store, &state, &work, &jobs) }
    }

    /// Hands over the waiting events up to the next one that is to be encoded.
    private func sendReady(
        of store: StoreReference, _ state: inout State, _ work: inout LoopWork,
        _ jobs: inout [Job]
    ) {
        guard let group = state.groups[store] else { return }
        let ready = group.unsent.prefix(while: \.event.isReady)
        for unsent in ready { send(unsent.event, to: group.subscribers, &work) }
        state.groups[store]?.unsent.removeFirst(ready.count)
        guard ready.count < group.unsent.count else { return }
        let next = group.unsent[ready.count].event
        jobs.append(Job(store: store, group: group.number, kind: .encode(next)))
    }

    private func send(_ event: Event, to subscribers: [Subscriber], _ work: inout LoopWork) {
        for subscriber in subscribers { work.add(on: subscriber.loop) { subscriber.offer(event) } }
    }

    private func start(_ job: Job) {
        switch job.kind {
        case .read(let since):
            threads.run(slicesFor: job.store.account) { [self] in
                Optional.some(try changes(of: job.store, since: since))
            } then: { [self] result in
                // Nobody may miss what could not be read.
                finish(job, (try? result.get()) ?? nil)
            }
        case .encode(let event):
            threads.run(slicesFor: job.store.account) {
                Optional.some(event.encodeLarge())
            } then: { [self] _ in
                finish(job, of: event)
            }
        }
    }

    private func finish(_ encoding: Job, of event: Event) {
        var jobs: [Job] = []
        state.withLock { state in
            guard state.groups[encoding.store]?.number == encoding.group else { return }
            var work = LoopWork()
            if event.isReady {
                sendReady(of: encoding.store, &state, &work, &jobs)
            } else {
                // The threads are busy.
                noteOverflow()
                end(encoding.store, .overflow, &state, &work)
            }
            work.submit()
        }
        jobs.forEach(start)
    }

    private typealias Changes = (set: ChangeSet, position: Position)

    /// - Returns: Nil if the subscribers must begin anew.
    private func changes(of store: StoreReference, since: Position) throws -> Changes? {
        let stored = try storage.read(store, since: since)
        guard case .changes(let records, let position, false, let horizon) = stored else {
            return nil
        }
        let set = ChangeSet(
            records: try records.map { try $0.record() }, cursor: position.cursor,
            serverMilliseconds: settings.clock.now(), isWhole: false, horizon: horizon)
        return (set, position)
    }

    private func finish(_ read: Job, _ changes: Changes?) {
        var jobs: [Job] = []
        state.withLock { state in
            guard state.groups[read.store]?.number == read.group else { return }
            var work = LoopWork()
            if let changes, !changes.set.records.isEmpty {
                let event = Event(changes.set, revision: changes.position.revision, encode)
                offer(event, of: read.store, &state, &work, &jobs)
            }
            guard let step = state.groups[read.store]?.feed.finish(at: changes?.position) else {
                return work.submit()
            }
            take(step, of: read.store, nil, &state, &work, &jobs)
            work.submit()
        }
        jobs.forEach(start)
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
