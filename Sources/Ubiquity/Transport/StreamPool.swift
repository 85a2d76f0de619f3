// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Synchronization
internal import UbiquityCore
internal import UbiquityWire

/// Carries out ``SharedStream`` for the process's stores of one account on one server. Makes no
/// decisions.
///
/// Shared state: `state`, guarded by its mutex; and the pools of the process by theirs. One thread at
/// a time carries out what is to be done, in order, without holding the mutex.
final class StreamPool: Sendable {
    private struct Account: Hashable {
        var address: ServerAddress
        var credential: String
    }

    private struct Hearer {
        var intake: IntakeLimits
        var receive: @Sendable (StreamMessage) -> Void
        var ended: @Sendable (LinkFailure?) -> Void
    }

    private struct State {
        var stream = SharedStream()
        var hearers: [SharedStream.Listener: Hearer] = [:]
        /// By the numbers of the connections.
        var connections: [Int: AnswerReceiver] = [:]
        /// Of the newest key that a listener has named; nil if none has.
        var proof: Bytes32?
        var lastListener = 0
        var isRunning = false
        var plannedWake = Int64.max
    }

    /// The pools with listeners, and those whose pause goes on.
    private static let pools = Mutex<[Account: (pool: StreamPool, listeners: Int)]>([:])

    private let account: Account
    private let state = Mutex(State())

    private init(_ account: Account) { self.account = account }

    /// Begins to listen.
    ///
    /// Both functions are called on the queue of the HTTP client, or that of another store, so they
    /// must not block.
    /// - Returns: A closure that ends it. Then nothing is called any more, but for what is being
    ///   delivered.
    static func listen(
        to store: StoreIdentifier, at address: ServerAddress, credential: String,
        since cursor: Cursor?, isSaved: Bool, generation: UInt32, proof: Bytes32?,
        within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void {
        let account = Account(address: address, credential: credential)
        let pool = pools.withLock { pools in
            pools = pools.filter { $0.value.listeners > 0 || $0.value.pool.isPausing }
            let pool = pools[account]?.pool ?? StreamPool(account)
            pools[account] = (pool, (pools[account]?.listeners ?? 0) + 1)
            return pool
        }
        let listener = pool.state.withLock { state in
            state.lastListener += 1
            let listener = SharedStream.Listener(state.lastListener, to: store)
            state.hearers[listener] = Hearer(intake: intake, receive: receive, ended: ended)
            state.proof = proof ?? state.proof
            return listener
        }
        pool.update {
            $0.listen(
                listener, since: cursor, isSaved: isSaved, generation: generation, at: $1)
        }
        return {
            guard pool.take(listener) != nil else { return }
            pool.update { $0.hangUp(listener, at: $1) }
        }
    }

    /// - Returns: Nil if it is gone already.
    private func take(_ listener: SharedStream.Listener) -> Hearer? {
        guard let hearer = state.withLock({ $0.hearers.removeValue(forKey: listener) }) else {
            return nil
        }
        Self.pools.withLock { pools in
            if pools[account]?.pool === self { pools[account]?.listeners -= 1 }
        }
        return hearer
    }

    private var isPausing: Bool { state.withLock { $0.stream.isPausing(at: Self.now) } }

    // MARK: - Running

    private static var now: Int64 { SystemClock.reading().uptime }

    private func update(_ body: (inout SharedStream, _ now: Int64) -> Void) {
        let mustRun = state.withLock { state in
            body(&state.stream, Self.now)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustRun { run() }
    }

    /// The caller may be an app that waits: the rest goes on elsewhere.
    private static let actionsMax = 256

    private func run() {
        for _ in 0..<Self.actionsMax {
            guard let action = next() else { return planWake() }
            perform(action)
        }
        DispatchQueue.global().async { [self] in run() }
    }

    private func next() -> SharedStream.Action? {
        state.withLock { state in
            let action = state.stream.next(at: Self.now)
            if action == nil { state.isRunning = false }
            return action
        }
    }

    private func planWake() {
        let now = Self.now
        let wake = state.withLock { state -> Int64? in
            // A timer stands still while the machine sleeps.
            guard let wake = state.stream.wake,
                wake < state.plannedWake || state.plannedWake <= now
            else { return nil }
            state.plannedWake = wake
            return wake
        }
        guard let wake else { return }
        let pause = DispatchTimeInterval.milliseconds(Int(max(1, wake - now)))
        DispatchQueue.global().asyncAfter(deadline: .now() + pause) { [weak self] in
            self?.state.withLock { $0.plannedWake = .max }
            self?.update { _, _ in }
        }
    }

    private func perform(_ action: SharedStream.Action) {
        switch action {
        case .open(let number, let places): open(number, places)
        case .close(let number):
            state.withLock { $0.connections.removeValue(forKey: number) }?.cancel()
        case .deliver(let message, let listener):
            state.withLock { $0.hearers[listener] }?.receive(message)
        case .end(let listener, let failure): take(listener)?.ended(failure)
        }
    }

    // MARK: - Connections

    private func open(_ number: Int, _ places: [SharedStream.Place]) {
        let bounds = state.withLock { state in
            state.hearers.values.map(\.intake.message).max { $0.bytes < $1.bytes }
        }
        var stream = ChangeStream(within: bounds ?? IntakeLimits(nil).message)
        let single = places.count == 1 ? places[0].store : nil
        let receiver = AnswerReceiver(
            account.address, silenceMilliseconds: ChangeStream.silenceMilliseconds,
            pieces: .init(mediaType: "text/event-stream") { [self] piece, silence in
                let events = try stream.take(piece, &silence)
                let stores = try events.map { event in try Self.store(of: event, or: single) }
                // To the others too, if it is an event of one.
                let isDue = (events.isEmpty || single == nil) && stream.isProgressDue()
                let isPartial = stream.isPartial
                // In one step, or the connection could be replaced within an event.
                update { shared, now in
                    if isDue { shared.progressed(on: number, at: now) }
                    for (event, store) in zip(events, stores) {
                        take(event, of: store, on: number, at: now, in: &shared)
                    }
                    shared.setPartial(isPartial, on: number)
                }
            })
        state.withLock { $0.connections[number] = receiver }
        request(places).send(to: receiver) { [self] result in
            state.withLock { _ = $0.connections.removeValue(forKey: number) }
            update { stream, now in
                switch result {
                case .success: stream.ended(number, nil, at: now)
                case .failure(let failure): stream.ended(number, failure, at: now)
                }
            }
        }
    }

    /// - Parameter single: The only store of the connection.
    private static func store(
        of event: ChangeEvent, or single: StoreIdentifier?
    ) throws(WireError) -> StoreIdentifier {
        guard let store = event.store ?? single, single == nil || store == single else {
            throw WireError("an event does not say of which store it is")
        }
        return store
    }

    private func take(
        _ event: ChangeEvent, of store: StoreIdentifier, on number: Int, at now: Int64,
        in shared: inout SharedStream
    ) {
        switch event.content {
        case .message(let message): shared.received(message, for: store, on: number, at: now)
        case .ended(let problem):
            shared.ended(store, on: number, LinkFailure(problem, account.address), at: now)
        }
    }

    /// A single store is asked for as 0.2 does, which every server knows.
    private func request(_ places: [SharedStream.Place]) -> ServerRequest {
        var request: ServerRequest
        if places.count == 1 {
            request = .changes(
                of: places[0].store, since: places[0].since, isSaved: places[0].isSaved,
                generation: places[0].generation, at: account.address,
                credential: account.credential)
        } else {
            var body = WireNewStream()
            body.stores = places.map { place in
                var store = WireNewStream.Store()
                store.identifier = place.store.string
                store.since = place.since?.text ?? ""
                if !place.isSaved { store.saved = false }
                store.generation = place.generation
                return store
            }
            request = ServerRequest(
                .post, ["changes"], at: account.address, credential: account.credential,
                body: WireFormat.protobuf.encode(body))
        }
        request.accept = "text/event-stream;events=binary"
        request.proof = state.withLock(\.proof)
        // The engine opens the stream of a store again, after a while.
        request.isRepeatable = places.count > 1
        return request
    }
}
