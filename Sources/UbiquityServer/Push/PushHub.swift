// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Knows the subscribers of each store, and sends them what was committed.
///
/// State: `state`, guarded by its lock, which is held for look-ups only.
final class PushHub: Sendable {
    private struct State {
        var subscribers: [StoreReference: [UInt64: Subscriber]] = [:]
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

    /// Subscribes a subscriber to every push that is committed from now on.
    /// - Throws: ``HubError``.
    /// - Parameter takesBinary: As ``Subscriber/takesBinary``.
    func subscribe(
        _ rights: DeviceRights, to store: StoreReference, takesBinary: Bool = false
    ) throws(HubError) -> Subscriber {
        let permit: AccountShares.Permit
        do { permit = try shares.take(rights) } catch { throw .tooMany }
        return try state.withLock { state throws(HubError) in
            guard !state.isClosed else { throw .closed }
            state.lastNumber += 1
            let subscriber = Subscriber(
                number: state.lastNumber, rights: rights, store: store,
                takesBinary: takesBinary, bytesMax: settings.listenerBufferBytesMax,
                permit: permit)
            state.subscribers[store, default: [:]][subscriber.number] = subscriber
            return subscriber
        }
    }

    /// Does nothing if it is not subscribed any more.
    func unsubscribe(_ subscriber: Subscriber) {
        subscriber.leave()
        state.withLock { state in
            state.subscribers[subscriber.store]?.removeValue(forKey: subscriber.number)
            if state.subscribers[subscriber.store]?.isEmpty == true {
                state.subscribers[subscriber.store] = nil
            }
        }
    }

    /// Must be called in the order of the revisions. The event's bytes are made once in each
    /// format.
    func publish(_ push: CommittedPush, of store: StoreReference) {
        let subscribers = state.withLock { $0.subscribers[store].map { Array($0.values) } ?? [] }
        guard !subscribers.isEmpty else { return }
        for (isBinary, subscribers) in Dictionary(grouping: subscribers, by: \.takesBinary) {
            let event = Subscriber.Event(
                revision: push.position.revision,
                bytes: ServerSentEvent.push(push.changes, isBinary: isBinary), committed: .now())
            for subscriber in subscribers where !subscriber.offer(event) {
                edge?.note(.listenerOverflow)
            }
        }
    }

    /// Sends keep-alives to the subscribers whose turn it is, so that not all are in the same
    /// second.
    /// - Parameter tick: The number of the second.
    func keepAlive(tick: Int) {
        let interval = UInt64(max(1, settings.keepAliveSeconds))
        let turn = UInt64(tick) % interval
        for subscriber in all() where subscriber.number % interval == turn {
            subscriber.offerKeepAlive()
        }
    }

    /// Records that events were passed to a subscriber.
    func delivered(_ events: [Subscriber.Event]) {
        let now = NIODeadline.now()
        edge?.metrics.delivered(
            events.compactMap(\.committed).map { Double((now - $0).nanoseconds) / 1e9 })
    }

    func end(where isOver: (Subscriber) -> Bool) {
        for subscriber in all() where isOver(subscriber) { subscriber.end(.closed) }
    }

    /// Ends all subscribers, and refuses new ones.
    func close() {
        state.withLock { $0.isClosed = true }
        for subscriber in all() { subscriber.end(.closed) }
    }

    private func all() -> [Subscriber] {
        state.withLock { $0.subscribers.values.flatMap(\.values) }
    }
}

enum HubError: Error, Hashable, Sendable {
    case closed
    case tooMany
}
