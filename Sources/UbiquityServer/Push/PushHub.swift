// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Knows the listeners of each store, and sends them what was committed.
///
/// State: `state`, guarded by its lock, which is held for look-ups only.
final class PushHub: Sendable {
    private struct State {
        var listeners: [StoreKey: [UInt64: Listener]] = [:]
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

    /// The bytes that wait for all listeners.
    var waitingBytes: Int { waiting.bytes }
    var count: Int { state.withLock { $0.listeners.values.reduce(0) { $0 + $1.count } } }

    /// Subscribes a listener to every push that is committed from now on.
    /// - Throws: ``HubError``.
    /// - Parameter takesBinary: As ``Listener/takesBinary``.
    func subscribe(
        _ rights: DeviceRights, to store: StoreKey, takesBinary: Bool = false
    ) throws(HubError) -> Listener {
        let permit: AccountShares.Permit
        do { permit = try shares.take(rights) } catch { throw .tooMany }
        return try state.withLock { state throws(HubError) in
            guard !state.isClosed else { throw .closed }
            state.lastNumber += 1
            let listener = Listener(
                number: state.lastNumber, rights: rights, store: store,
                takesBinary: takesBinary, bytesMax: settings.listenerBufferBytesMax,
                permit: permit)
            state.listeners[store, default: [:]][listener.number] = listener
            return listener
        }
    }

    /// Does nothing if it is not subscribed any more.
    func unsubscribe(_ listener: Listener) {
        listener.leave()
        state.withLock { state in
            state.listeners[listener.store]?.removeValue(forKey: listener.number)
            if state.listeners[listener.store]?.isEmpty == true {
                state.listeners[listener.store] = nil
            }
        }
    }

    /// Must be called in the order of the revisions. The event's bytes are made once in each
    /// format.
    func publish(_ commit: CommittedPush, of store: StoreKey) {
        let listeners = state.withLock { $0.listeners[store].map { Array($0.values) } ?? [] }
        guard !listeners.isEmpty else { return }
        let changes = ChangeSet(
            records: commit.writes, cursor: commit.position.cursor,
            serverMilliseconds: commit.serverMilliseconds, isWhole: false, horizon: commit.horizon)
        for (isBinary, listeners) in Dictionary(grouping: listeners, by: \.takesBinary) {
            let event = Listener.Event(
                revision: commit.position.revision,
                bytes: ServerSentEvent.push(changes, isBinary: isBinary), committed: .now())
            for listener in listeners where !listener.offer(event) { edge?.note(.listenerOverflow) }
        }
    }

    /// Sends keep-alives to the listeners whose turn it is, so that not all are in the same second.
    /// - Parameter tick: The number of the second.
    func keepAlive(tick: Int) {
        let interval = UInt64(max(1, settings.keepAliveSeconds))
        let turn = UInt64(tick) % interval
        for listener in all() where listener.number % interval == turn {
            listener.offerKeepAlive()
        }
    }

    /// Records that events were passed to a listener.
    func told(_ events: [Listener.Event]) {
        let now = NIODeadline.now()
        edge?.metrics.delivered(
            events.compactMap(\.committed).map { Double((now - $0).nanoseconds) / 1e9 })
    }

    func devices() -> Set<DeviceName> { Set(all().map(\.device)) }

    func end(where isOver: (Listener) -> Bool) {
        for listener in all() where isOver(listener) { listener.end(.closed) }
    }

    /// Ends all listeners, and refuses new ones.
    func close() {
        state.withLock { $0.isClosed = true }
        for listener in all() { listener.end(.closed) }
    }

    private func all() -> [Listener] {
        state.withLock { $0.listeners.values.flatMap(\.values) }
    }
}

enum HubError: Error, Hashable, Sendable {
    case closed
    case tooMany
}
