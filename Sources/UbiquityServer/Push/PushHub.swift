// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Sends the subscribers of each store what was committed, by this node or others: carries out
/// ``StreamHub``, which decides.
///
/// State: `state`, guarded by its lock. Events are handed to the subscribers' loops under it, so
/// that they are in order.
final class PushHub: Sendable {
    private typealias Hub = StreamHub<StoreReference, Subscriber, Event>

    private let state: Mutex<Hub>
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
        encode: @escaping Event.Encoder = { ServerSentEvent.push($0, of: $1, isBinary: $2) }
    ) {
        self.encode = encode
        self.storage = storage
        self.threads = threads
        self.settings = settings
        self.edge = edge
        state = Mutex(Hub(unsentBytesMax: settings.constants.streamBufferBytesMax))
        waiting = ByteBudget(max: settings.streamsBytesMax)
        shares = AccountShares(
            of: waiting, placesMax: settings.streamsPerAccountMax,
            bytesMin: settings.constants.streamBufferBytesMax)
        unsentShares = AccountShares(
            of: waiting, placesMax: .max, bytesMin: settings.constants.streamBufferBytesMax)
    }

    /// The bytes that wait for all subscribers, or to be encoded for them.
    var waitingBytes: Int { waiting.bytes }
    var count: Int { subscribers { _ in true }.count }
    var bytesPerStreamMax: Int { settings.constants.streamBufferBytesMax }

    /// The time that a slow subscriber has.
    var slowMilliseconds: Int64 { settings.constants.slowSeconds * 1_000 }
    /// The stores with subscribers.
    var stores: [StoreReference] { state.withLock(\.stores) }
    /// The devices with subscribers.
    var devices: Set<DeviceReference> { Set(subscribers { _ in true }.lazy.map(\.device)) }

    // MARK: - Subscribers

    /// Subscribes a subscriber to everything that is committed from now on. Call
    /// ``begin(_:at:)`` when it has read the store.
    /// - Parameter stream: It has just opened the store.
    /// - Throws: ``HubError``.
    func subscribe(
        _ rights: DeviceRights, to store: StoreReference, in stream: EventStream
    ) throws(HubError) -> Subscriber {
        let permit: AccountShares.Permit
        do { permit = try shares.take(rights) } catch { throw .tooMany }
        let subscriber = state.withLock { hub in
            hub.subscribe(to: store) { number in
                Subscriber(
                    number: number, rights: rights, store: store, permit: permit, hub: self,
                    in: stream)
            }
        }
        guard let subscriber else { throw .closed }
        stream.join(subscriber)
        return subscriber
    }

    /// A subscriber has read its store as of this position.
    func begin(_ subscriber: Subscriber, at position: Position) {
        carryOut { $0.begin(subscriber.store, at: position) }
    }

    /// Does nothing if it is not subscribed any more.
    func unsubscribe(_ subscriber: Subscriber) {
        state.withLock { $0.unsubscribe(subscriber, from: subscriber.store) }
    }

    // MARK: - Changes

    /// A push that was committed to a store.
    typealias Commit = (store: StoreReference, push: CommittedPush)

    /// Hands what this node has committed to the subscribers' loops. Must be called in the order of
    /// each store's revisions.
    /// - Parameter answers: What the loops do afterwards.
    func publish(_ commits: [Commit], then answers: LoopWork) {
        carryOut(then: answers) { hub in
            commits.flatMap { store, push in
                hub.publish(push, to: store) {
                    event(push.changes, revision: push.position.revision, of: store)
                }
            }
        }
    }

    /// A hint says that a store has reached this position.
    func hear(of position: Position, in store: StoreReference) {
        carryOut { $0.hear(of: position, in: store) }
    }

    /// The storage goes on in this history. If it is another one than before, all subscribers must
    /// end, see ``endOfOtherHistory(second:)``.
    func follow(_ history: UInt64?) { state.withLock { $0.follow(history) } }

    /// Ends the subscribers of another history whose turn it is.
    func endOfOtherHistory(second: Int) {
        end(state.withLock { $0.endOfOtherHistory(second: second) })
    }

    private func event(
        _ changes: ChangeSet, revision: Int64, of store: StoreReference
    ) -> Event {
        Event(
            changes, of: store.identifier, revision: revision,
            permit: { [unsentShares] in try? unsentShares.take(store.account) }, encode)
    }

    /// - Parameter answers: What the loops do after the hub's actions.
    private func carryOut(
        then answers: LoopWork = LoopWork(), _ decide: (inout Hub) -> [Hub.Action]
    ) {
        var jobs: [Hub.Job] = []
        state.withLock { hub in
            var work = LoopWork()
            for action in decide(&hub) {
                switch action {
                case .send(let event, let subscribers):
                    event.release()
                    for subscriber in subscribers {
                        work.add(on: subscriber.loop) { subscriber.offer(event) }
                    }
                case .end(let subscribers, let end):
                    if end == .overflow { noteOverflow() }
                    for subscriber in subscribers {
                        work.add(on: subscriber.loop) { subscriber.end(end) }
                    }
                case .start(let job): jobs.append(job)
                }
            }
            work.add(answers)
            work.submit()
        }
        jobs.forEach(start)
    }

    private func start(_ job: Hub.Job) {
        let account = job.store.account
        switch job.kind {
        case .read(let since):
            threads.run(slicesFor: account) { [self] in
                Optional.some(try changes(of: job.store, since: since))
            } then: { [self] result in
                let changes = (try? result.get()) ?? nil
                carryOut { $0.finish(job, read: changes?.event, at: changes?.position) }
            }
        case .encode(let event):
            threads.run(slicesFor: account) {
                Optional.some(event.encodeLarge())
            } then: { [self] result in
                // It fails if the threads are busy.
                let isEncoded = (try? result.get()) != nil
                carryOut { $0.finish(job, isEncoded: isEncoded) }
            }
        }
    }

    /// - Returns: Nil if the subscribers must begin anew.
    private func changes(
        of store: StoreReference, since: Position
    ) throws -> (event: Event?, position: Position)? {
        let stored = try storage.read(store, since: since)
        guard case .changes(let records, let position, false, let horizon) = stored else {
            return nil
        }
        let set = ChangeSet(
            records: try records.map { try $0.record() }, cursor: position.cursor,
            serverMilliseconds: settings.clock.now(), isWhole: false, horizon: horizon)
        return (
            records.isEmpty ? nil : event(set, revision: position.revision, of: store), position
        )
    }

    // MARK: - All of them

    /// Sends keep-alives to the subscribers whose turn it is, so that not all are in the same
    /// second.
    /// - Parameter tick: The number of the second.
    func keepAlive(tick: Int) {
        let interval = UInt64(max(1, settings.keepAliveSeconds))
        let turn = UInt64(tick) % interval
        var work = LoopWork()
        for subscriber in subscribers(where: { $0.turn % interval == turn }) {
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
    func end(where isOver: (Subscriber) -> Bool) { end(subscribers(where: isOver)) }

    /// Ends stores, and not the others of their streams.
    /// - Parameter isRefused: Must not use the hub.
    func refuse(_ refusal: AccessRefusal, where isRefused: (Subscriber) -> Bool) {
        var work = LoopWork()
        for subscriber in subscribers(where: isRefused) {
            work.add(on: subscriber.loop) { subscriber.refuse(Problem(refusal)) }
        }
        work.submit()
    }

    private func end(_ subscribers: [Subscriber]) {
        var work = LoopWork()
        for subscriber in subscribers {
            work.add(on: subscriber.loop) { subscriber.end(.closed) }
        }
        work.submit()
    }

    /// Ends all subscribers, and refuses new ones.
    func close() {
        state.withLock { $0.close() }
        end { _ in true }
    }

    private func subscribers(where isMeant: (Subscriber) -> Bool) -> [Subscriber] {
        state.withLock { $0.subscribers(where: isMeant) }
    }
}

enum HubError: Error, Hashable, Sendable {
    case closed
    case tooMany
}
