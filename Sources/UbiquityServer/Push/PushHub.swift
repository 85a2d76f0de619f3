// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Knows the subscribers of each store, and sends them what was committed.
///
/// State: `state`, guarded by its lock, which is held for look-ups only.
final class PushHub: Sendable {
    private struct State {
        var subscribers: [StoreReference: [Subscriber]] = [:]
        var lastNumber: UInt64 = 0
        var isClosed = false
    }

    private let state = Mutex(State())
    private let settings: ServerSettings
    private let edge: Edge?
    private let waiting: ByteBudget
    private let shares: AccountShares

    init(settings: ServerSettings, edge: Edge? = nil) {
        self.settings = settings
        self.edge = edge
        waiting = ByteBudget(max: settings.listenersBytesMax)
        shares = AccountShares(
            of: waiting, placesMax: settings.listenersPerAccountMax,
            bytesMin: settings.listenerBufferBytesMax)
    }

    /// The bytes that wait for all subscribers.
    var waitingBytes: Int { waiting.bytes }
    var count: Int { state.withLock { $0.subscribers.values.reduce(0) { $0 + $1.count } } }
    var bytesPerListenerMax: Int { settings.listenerBufferBytesMax }

    /// Subscribes a subscriber to every push that is committed from now on.
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
            state.subscribers[store, default: []].append(subscriber)
            return subscriber
        }
    }

    /// Does nothing if it is not subscribed any more.
    func unsubscribe(_ subscriber: Subscriber) {
        state.withLock { state in
            state.subscribers[subscriber.store]?.removeAll { $0 === subscriber }
            if state.subscribers[subscriber.store]?.isEmpty == true {
                state.subscribers[subscriber.store] = nil
            }
        }
    }

    /// Hands a push to its subscribers' loops. Must be called in the order of the revisions. The
    /// event's bytes are made once in each format.
    func publish(_ push: CommittedPush, of store: StoreReference, through work: inout LoopWork) {
        let subscribers = state.withLock { $0.subscribers[store] ?? [] }
        guard !subscribers.isEmpty else { return }
        let committed = NIODeadline.now()
        var events: [Bool: Event] = [:]
        for subscriber in subscribers {
            let isBinary = subscriber.takesBinary
            let event =
                events[isBinary]
                ?? Event(
                    revision: push.position.revision,
                    bytes: EventBytes(ServerSentEvent.push(push.changes, isBinary: isBinary)),
                    committed: committed)
            events[isBinary] = event
            work.add(on: subscriber.loop) { subscriber.offer(event) }
        }
    }

    /// Sends keep-alives to the subscribers whose turn it is, so that not all are in the same
    /// second.
    /// - Parameter tick: The number of the second.
    func keepAlive(tick: Int) {
        let interval = UInt64(max(1, settings.keepAliveSeconds))
        let turn = UInt64(tick) % interval
        var work = LoopWork()
        for subscriber in all() where subscriber.number % interval == turn {
            work.add(on: subscriber.loop) { subscriber.keepAlive() }
        }
        work.submit()
    }

    /// Records that an event was passed to a subscriber's connection.
    func delivered(_ event: Event) {
        let elapsed = NIODeadline.now() - event.committed
        edge?.metrics.delivered(seconds: Double(elapsed.nanoseconds) / 1e9)
    }

    func noteOverflow() { edge?.note(.listenerOverflow) }

    func end(where isOver: (Subscriber) -> Bool) { end(all().filter(isOver)) }

    /// Ends all subscribers, and refuses new ones.
    func close() {
        state.withLock { $0.isClosed = true }
        end(all())
    }

    private func end(_ subscribers: [Subscriber]) {
        var work = LoopWork()
        for subscriber in subscribers {
            work.add(on: subscriber.loop) { subscriber.end(.closed) }
        }
        work.submit()
    }

    private func all() -> [Subscriber] {
        state.withLock { $0.subscribers.values.flatMap { $0 } }
    }
}

enum HubError: Error, Hashable, Sendable {
    case closed
    case tooMany
}
