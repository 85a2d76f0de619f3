// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// Carries out what a ``SyncEngine`` says: its disk, its connection, its notices.
///
/// It decides nothing. What it shares:
///
/// * `memory`, a constant that guards itself: the app's threads read and write through it.
/// * `storage`, `link`, `stream`, `cancelWake`, `move` and `toldStatus` belong to `queue`, a serial
///   one: effects are done on it in the order in which the engine gave them.
/// * `audience` is a constant, and guards itself.
final class StoreDriver: @unchecked Sendable {
    let memory: EngineMemory
    private let queue: any WorkQueue
    private let audience: Audience
    private var storage: any LocalStorage
    private var move: Move?
    private var toldStatus: EngineStatus?
    private var link: (any StoreLink)?
    /// The newest stream, and how to end it.
    private var stream: (number: Int, end: @Sendable () -> Void)?
    private var cancelWake: (@Sendable () -> Void)?

    /// To another account's disk, as soon as all is saved on this one.
    private struct Move {
        var storage: any LocalStorage
        var content: DiskChanges
        var discardsUnsaved: Bool
        var moved: @Sendable () -> Void
    }

    /// - Parameter content: What the storage has.
    init(
        storage: any LocalStorage, content: DiskChanges, settings: SyncEngine.Settings,
        audience: Audience, runtime: StoreRuntime
    ) {
        queue = runtime.driverQueue
        self.storage = storage
        self.audience = audience
        let engine = SyncEngine(
            disk: content, settings: settings, seed: runtime.seed, at: runtime.now())
        memory = EngineMemory(engine, now: runtime.now)
    }

    // MARK: - For the app's threads

    /// Reads from the engine. Must be short.
    func read<Result: Sendable>(_ body: (borrowing SyncEngine) -> Result) -> Result {
        memory.state.withLock { body($0.engine) }
    }

    /// Writes as one transaction. The body must be short.
    /// - Returns: The keys whose policy could not merge what was written.
    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) throws(LimitViolation) -> Set<Key> {
        let outcome = memory.write(body)
        if outcome.mustDrain { startDrain() }
        if let violation = outcome.violation { throw violation }
        return outcome.misfits
    }

    /// Changes what needs neither disk nor server. The body must be short.
    func change(_ body: (inout SyncEngine) -> Void) { memory.state.withLock { body(&$0.engine) } }

    /// From now on the audience is told of the app's own writes too.
    func tellOwnWrites() { memory.state.withLock { $0.engine.tellsOwnWrites = true } }

    /// Brings memory and disk together, and wakes the sync. Never waits for the network.
    func synchronize() -> Bool {
        queue.perform {
            refresh()
            handle(.hurry)
            return drain()
        }
    }

    func requestSync() async throws {
        let request = Mutex<Int?>(nil)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // In one step, or the engine could be done before anybody waits.
                let id = memory.state.withLock { state in
                    let id = state.engine.requestSync(at: memory.now())
                    state.waiters.append((id, continuation))
                    return id
                }
                request.withLock { $0 = id }
                scheduleDrain()
                if !queue.isAwaited(until: { [self] in !isWaiting(id) }) {
                    finish(id, throwing: UbiquityError.closed)
                }
                if Task.isCancelled { finish(id, throwing: CancellationError()) }
            }
        } onCancel: {
            if let id = request.withLock(\.self) { finish(id, throwing: CancellationError()) }
        }
    }

    private func isWaiting(_ request: Int) -> Bool {
        memory.state.withLock { $0.waiters.contains { $0.request == request } }
    }

    /// Somebody waits for the first download.
    func initialSyncIsAwaited() { queue.isAwaited(until: nil) }

    private func finish(_ id: Int, throwing error: (any Error)?) {
        let waiter = memory.state.withLock { $0.takeWaiter(id) }
        if let error { waiter?.resume(throwing: error) } else { waiter?.resume() }
    }

    // MARK: - For what watches over it

    /// Tells the engine what happened, and carries out what follows.
    func tell(_ event: SyncEngine.Event) {
        memory.state.withLock { $0.engine.handle(event, at: memory.now()) }
        scheduleDrain()
    }

    func signIn(account: String, device: DeviceID, link: any StoreLink) {
        // Not later: a round trip asked for right after must not find the device signed out.
        queue.perform {
            self.link = link
            handle(.signedIn(account: account, device: device))
        }
        scheduleDrain()
    }

    /// Takes the lead, with all that is on the disk; unless the device has turned to another one.
    func lead(on storage: any LocalStorage) {
        queue.enqueue { [self] in
            guard self.storage === storage else { return }
            refresh()
            handle(.leading(true))
            drain()
        }
    }

    /// Looks whether another process saved.
    func lookAtDisk() {
        queue.enqueue { [self] in
            refresh()
            drain()
        }
    }

    /// Turns to another account's disk as soon as all is saved on this one, which is then closed.
    /// - Parameters:
    ///   - content: What the other disk has.
    ///   - discardsUnsaved: The disk that is left is being wiped.
    ///   - moved: Called on the driver's queue after that.
    func move(
        to storage: any LocalStorage, content: DiskChanges, discardsUnsaved: Bool,
        moved: @escaping @Sendable () -> Void
    ) {
        queue.enqueue { [self] in
            move?.storage.close()
            move = Move(
                storage: storage, content: content, discardsUnsaved: discardsUnsaved, moved: moved)
            handle(.leaving)
            drain()
        }
    }

    /// Saves what is unsaved and lets go of everything.
    func close() { queue.perform { end() } }

    /// The same, without waiting for it.
    func closeLater(_ completion: @escaping @Sendable () -> Void) {
        queue.enqueue { [self] in
            end()
            completion()
        }
    }

    /// What is planned on the queue will not be done: nobody waits for it, and who writes from now on
    /// is to notice.
    func abandon() {
        let waiters = memory.state.withLock { state in
            state.isDrainScheduled = false
            return state.waiters.map(\.request)
        }
        for waiter in waiters { finish(waiter, throwing: UbiquityError.closed) }
    }

    private func end() {
        handle(.leading(false))
        drain()
        cancelWake?()
        stream?.end()
        storage.close()
        move?.storage.close()
    }

    // MARK: - On the queue

    private func handle(_ event: SyncEngine.Event) {
        memory.state.withLock { $0.engine.handle(event, at: memory.now()) }
    }

    private func scheduleDrain() {
        if memory.state.withLock({ $0.scheduleDrain() }) { startDrain() }
    }

    /// To be called when the memory says so.
    func startDrain() { queue.enqueue { [self] in drain() } }

    /// Does what there is to do.
    /// - Returns: Whether memory and disk agreed in the moment in which there was nothing more: what
    ///   the server says right after makes them differ again.
    @discardableResult
    private func drain() -> Bool {
        memory.state.withLock { $0.isDrainScheduled = false }
        var isSaved = false
        while let effect = memory.state.withLock({ state in
            let effect = state.engine.nextEffect(at: memory.now())
            isSaved = state.engine.isSaved && state.engine.diskFailure == nil
            return effect
        }) {
            perform(effect)
        }
        if finishMove() { return drain() }
        tellStatus()
        scheduleWake()
        return isSaved
    }

    /// - Returns: Whether the engine has another disk now.
    private func finishMove() -> Bool {
        guard let move else { return false }
        let isMoved = memory.state.withLock { state in
            guard state.engine.isSaved || move.discardsUnsaved else { return false }
            state.engine.move(
                to: move.content, discardsUnsaved: move.discardsUnsaved, at: memory.now())
            return true
        }
        guard isMoved else { return false }
        storage.close()
        storage = move.storage
        link = nil
        self.move = nil
        // What was written there since it was read.
        refresh()
        move.moved()
        return true
    }

    private func tellStatus() {
        guard audience.statuses.hasListeners else { return }
        let status = read(\.status)
        guard status != toldStatus else { return }
        toldStatus = status
        audience.tell(status)
    }

    private func perform(_ effect: SyncEngine.Effect) {
        switch effect {
        case .save(let batch): save(batch)
        case .notify(let notice): audience.tell(notice)
        case .finishSync(let id, let failure): finish(id, throwing: failure.map(UbiquityError.init))
        case .listen(let stream, let cursor): listen(stream, since: cursor)
        case .hangUp(let stream): hangUp(stream)
        case .push(let number, let push): self.push(number, push)
        case .pull(let number, let cursor): pull(number, since: cursor)
        }
    }

    private func refresh() {
        let version = read { $0.diskVersion }
        do {
            if let changes = try storage.changes(after: version) { handle(.diskChanged(changes)) }
        } catch {
            handle(.saveFailed("\(error)"))
        }
    }

    private func save(_ batch: SaveBatch) {
        do {
            switch try storage.save(batch) {
            case .saved(let version):
                handle(.saved(version: version))
                // Behind what is waited for now.
                queue.enqueue { [storage] in storage.tidy() }
            case .conflict(let changes): handle(.saveConflicted(changes))
            }
        } catch {
            handle(.saveFailed("\(error)"))
        }
    }

    private func listen(_ stream: Int, since cursor: Cursor?) {
        let end = link?.listen(since: cursor) { [weak self] message in
            self?.tell(.streamReceived(stream, message))
        } ended: { [weak self] failure in
            self?.tell(.streamEnded(stream, failure))
        }
        // There is one at a time: the engine has hung up the one before, or it has ended.
        self.stream = end.map { (stream, $0) }
    }

    private func hangUp(_ number: Int) {
        guard let stream, stream.number == number else { return }
        stream.end()
        self.stream = nil
    }

    private func push(_ number: Int, _ push: Push) {
        link?.push(push) { [weak self] result in
            switch result {
            case .success(let answer): self?.tell(.pushAnswered(number, answer))
            case .failure(let failure): self?.tell(.pushFailed(number, failure))
            }
        }
    }

    private func pull(_ number: Int, since cursor: Cursor?) {
        link?.pull(since: cursor) { [weak self] result in
            switch result {
            case .success(let changes): self?.tell(.pulled(number, changes))
            case .failure(let failure): self?.tell(.pullFailed(number, failure))
            }
        }
    }

    private func scheduleWake() {
        cancelWake?()
        cancelWake = nil
        guard let wake = read({ $0.nextWake }) else { return }
        let milliseconds = max(1, min(wake - memory.now().uptime, 86_400_000))
        cancelWake = queue.enqueue(after: milliseconds) { [weak self] in self?.drain() }
    }

    /// The newest refused writes, the newest first; those of this moment included.
    func refusedWrites() throws -> [RefusedWrite] {
        try queue.perform {
            drain()
            return try storage.refusedWrites()
        }
    }

    func forgetRefusedWrites() throws {
        try queue.perform {
            drain()
            try storage.forgetRefusedWrites()
        }
    }
}
