// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// Carries out what a ``SyncEngine`` says: its disk, its connection, its notices.
///
/// It decides nothing. What it shares:
///
/// * `state`, by its mutex, which is held for no longer than the engine thinks: the app's threads
///   read and write through it. Nothing slow and no call of the app happens while it is held.
/// * `storage`, `transport`, `tasks` and `timer` belong to `queue`, a serial one: effects are done
///   on it in the order in which the engine gave them.
/// * `notices` is a queue of its own, so that an observer may call anything here, and so that a
///   slow one delays other notices only. Never the main queue: Foundation on Linux makes the
///   poster wait for observers on `queue: .main`.
final class StoreDriver: @unchecked Sendable {
    private struct State {
        var engine: SyncEngine
        var isDrainScheduled = false
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
    }

    private let state: Mutex<State>
    private let queue = DispatchQueue(label: "ubiquity.driver", qos: .userInitiated)
    private let notices = DispatchQueue(label: "ubiquity.notices")
    private let storage: any LocalStorage
    private var transport: (any Transport)?
    private var tasks: [Int: Task<Void, Never>] = [:]
    private var timer: (any DispatchSourceTimer)?
    private let deliver: @Sendable (Notice) -> Void
    private let now: @Sendable () -> ClockReading

    /// - Parameters:
    ///   - deliver: Called on a queue of the driver's, one notice after the other.
    /// - Throws: What the storage throws when it is read first.
    init(
        storage: any LocalStorage, settings: SyncEngine.Settings,
        now: @escaping @Sendable () -> ClockReading = SystemClock.reading,
        deliver: @escaping @Sendable (Notice) -> Void
    ) throws {
        self.storage = storage
        self.now = now
        self.deliver = deliver
        let engine = SyncEngine(
            disk: try storage.load(), settings: settings, seed: .random(in: 0 ... .max), at: now())
        state = Mutex(State(engine: engine))
    }

    // MARK: - For the app's threads

    /// Reads from the engine. Must be short.
    func read<Result: Sendable>(_ body: (borrowing SyncEngine) -> Result) -> Result {
        state.withLock { body($0.engine) }
    }

    func write(_ changes: [Key: Content]) throws(LimitViolation) {
        let failure = state.withLock { state -> LimitViolation? in
            do throws(LimitViolation) {
                try state.engine.write(changes, at: now())
                return nil
            } catch { return error }
        }
        scheduleDrain()
        if let failure { throw failure }
    }

    /// Brings memory and disk together, and wakes the sync. Never waits for the network.
    func synchronize() -> Bool {
        queue.sync {
            refresh()
            handle(.hurry)
            drain()
        }
        return read { $0.isSaved && $0.diskFailure == nil }
    }

    func requestSync() async throws {
        let request = Mutex<Int?>(nil)
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // In one step, or the engine could be done before anybody waits.
                let id = state.withLock { state in
                    let id = state.engine.requestSync(at: now())
                    state.waiters[id] = continuation
                    return id
                }
                request.withLock { $0 = id }
                scheduleDrain()
                if Task.isCancelled { finish(id, throwing: CancellationError()) }
            }
        } onCancel: {
            if let id = request.withLock(\.self) { finish(id, throwing: CancellationError()) }
        }
    }

    private func finish(_ id: Int, throwing error: (any Error)?) {
        let waiter = state.withLock { $0.waiters.removeValue(forKey: id) }
        if let error { waiter?.resume(throwing: error) } else { waiter?.resume() }
    }

    // MARK: - For what watches over it

    /// Tells the engine what happened, and carries out what follows.
    func tell(_ event: SyncEngine.Event) {
        state.withLock { $0.engine.handle(event, at: now()) }
        scheduleDrain()
    }

    func signIn(account: String, device: DeviceID, transport: any Transport) {
        // Not later: a round trip asked for right after must not find the device signed out.
        queue.sync {
            self.transport = transport
            handle(.signedIn(account: account, device: device))
        }
        scheduleDrain()
    }

    /// Takes the lead, with all that is on the disk.
    func lead() {
        queue.async { [self] in
            refresh()
            handle(.leading(true))
            drain()
        }
    }

    /// Looks whether another process saved.
    func lookAtDisk() {
        queue.async { [self] in
            refresh()
            drain()
        }
    }

    /// Saves what is unsaved and lets go of everything.
    func close() { queue.sync { end() } }

    /// The same, without waiting for it.
    func closeLater(_ completion: @escaping @Sendable () -> Void) {
        queue.async { [self] in
            end()
            completion()
        }
    }

    private func end() {
        handle(.leading(false))
        drain()
        timer?.cancel()
        for task in tasks.values { task.cancel() }
        storage.close()
    }

    // MARK: - On the queue

    private func handle(_ event: SyncEngine.Event) {
        state.withLock { $0.engine.handle(event, at: now()) }
    }

    private func scheduleDrain() {
        let isScheduled = state.withLock { state in
            defer { state.isDrainScheduled = true }
            return state.isDrainScheduled
        }
        if !isScheduled { queue.async { [self] in drain() } }
    }

    private func drain() {
        state.withLock { $0.isDrainScheduled = false }
        while let effect = state.withLock({ $0.engine.nextEffect(at: now()) }) {
            perform(effect)
        }
        scheduleWake()
    }

    private func perform(_ effect: SyncEngine.Effect) {
        switch effect {
        case .save(let batch): save(batch)
        case .notify(let notice): notices.async { [deliver] in deliver(notice) }
        case .finishSync(let id, let failure): finish(id, throwing: failure.map(UbiquityError.init))
        case .listen(let stream, let cursor): listen(stream, since: cursor)
        case .hangUp(let stream): tasks.removeValue(forKey: stream)?.cancel()
        case .push(let push): self.push(push)
        case .pull(let cursor): pull(since: cursor)
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
            case .saved(let version): handle(.saved(version: version))
            case .conflict(let changes): handle(.saveConflicted(changes))
            }
        } catch {
            handle(.saveFailed("\(error)"))
        }
    }

    private func listen(_ stream: Int, since cursor: Cursor?) {
        guard let transport else { return }
        tasks[stream] = Task { [weak self] in
            var failure: LinkFailure?
            do throws(LinkFailure) {
                try await transport.listen(since: cursor) { [weak self] message in
                    self?.tell(.streamReceived(stream, message))
                }
            } catch { failure = error }
            self?.tell(.streamEnded(stream, failure))
        }
    }

    private func push(_ push: Push) {
        guard let transport else { return }
        Task { [weak self] in
            do throws(LinkFailure) {
                let answer = try await transport.push(push)
                self?.tell(.pushAnswered(answer))
            } catch { self?.tell(.pushFailed(error)) }
        }
    }

    private func pull(since cursor: Cursor?) {
        guard let transport else { return }
        Task { [weak self] in
            do throws(LinkFailure) {
                let changes = try await transport.pull(since: cursor)
                self?.tell(.pulled(changes))
            } catch { self?.tell(.pullFailed(error)) }
        }
    }

    private func scheduleWake() {
        timer?.cancel()
        timer = nil
        guard let wake = read({ $0.nextWake }) else { return }
        let milliseconds = max(1, min(wake - now().uptime, 86_400_000))
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + .milliseconds(Int(milliseconds)))
        timer.setEventHandler { [weak self] in self?.drain() }
        timer.resume()
        self.timer = timer
    }

    /// The newest refused writes, the newest first.
    func refusedWrites() throws -> [RefusedWrite] { try queue.sync { try storage.refusedWrites() } }
}
