// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Logging
internal import Synchronization
internal import UbiquityCore

/// Runs a store's ``Driver``: adds a lock for the app's threads, a queue for its steps, and a
/// timer.
///
/// Makes no decisions. Shared state:
///
/// * `shared`, a thread-safe constant, through which the app's threads read and write.
/// * `shell`, `cancelWake`, `postedStatus` and `isSynchronized` belong to the serial `queue`, on
///   which steps run in the order in which the driver gave them.
/// * `reportRates`, guarded by a mutex, because reports come from any thread.
/// * `poster`, `logger` and `closed` are thread-safe constants.
final class StoreDriver: @unchecked Sendable {
    let shared: SharedEngine
    let queue: any WorkQueue
    private let poster: NotificationPoster
    private let logger: Logger
    private let reportRates = Mutex<[UbiquityError.Code: ReportRate]>([:])
    let shell: StoreShell
    private var cancelWake: (@Sendable () -> Void)?
    private var postedStatus: EngineStatus?
    private var isSynchronized = false
    /// Signalled when the file is closed for good.
    let closed = DispatchSemaphore(value: 0)

    /// Opens the store's file of the signed-in account, creating it if needed.
    /// - Parameter device: Nil for a store in memory.
    init(
        _ identity: StoreIdentity, on device: (any StoreDevice)?, poster: NotificationPoster,
        runtime: StoreRuntime, configuration: UbiquityConfiguration
    ) throws {
        self.poster = poster
        logger = configuration.logger
        queue = runtime.driverQueue
        let state = try device?.current()
        shell = try StoreShell(identity, on: device, folder: state?.folder)
        let driver = Driver(
            content: try shell.storage.load(), device: state, store: identity.identifier,
            settings: configuration.engineSettings, seed: runtime.seed, at: runtime.now())
        shared = SharedEngine(driver, now: runtime.now)
        try shell.start { [weak self] in self?.receive($0) }
        scheduleRun()
    }

    // MARK: - For the app's threads

    /// Reads from the engine. The body must be short.
    func read<Result: Sendable>(_ body: (borrowing SyncEngine) -> Result) -> Result {
        shared.state.withLock { body($0.driver.engine) }
    }

    var status: EngineStatus { shared.state.withLock { $0.driver.status } }

    /// Nil while the device is signed out.
    var signedIn: SignedInAccount? { shared.state.withLock { $0.driver.signedIn } }

    /// The folder of the file in use; empty for a store in memory.
    var folder: String { shared.state.withLock { $0.driver.folder } }

    /// The process that holds the connection, if known.
    var leader: String? { shell.leader(in: folder) }

    /// Changes something that needs neither disk nor server. The body must be short.
    func change(_ body: (inout SyncEngine) -> Void) {
        shared.state.withLock { body(&$0.driver.engine) }
    }

    /// From now on, reports the app's own writes to the poster as well.
    func notifyOwnWrites() { change { $0.notifiesOwnWrites = true } }

    /// Brings memory and disk together and wakes the sync. Never waits for the network.
    func synchronize() -> Bool {
        queue.perform {
            isSynchronized = false
            handle(.synchronize)
            run()
            return isSynchronized
        }
    }

    /// Call when the app waits for the first download.
    func initialSyncIsAwaited() { queue.isAwaited(until: nil) }

    /// The newest refused writes, the newest first, including those just refused.
    func refusedWrites() throws -> [RefusedWrite] {
        try queue.perform {
            run()
            return try shell.storage.refusedWrites()
        }
    }

    func forgetRefusedWrites() throws {
        try queue.perform {
            run()
            try shell.storage.forgetRefusedWrites()
        }
    }

    /// Reports an error to the log and to observers of errors. Repeated errors are rate-limited.
    func report(_ error: UbiquityError) {
        let now = shared.now().uptime
        let leftOut = reportRates.withLock { rates in
            rates[error.code, default: ReportRate(now: now)].admit(now: now)
        }
        guard let leftOut else { return }
        let rest =
            leftOut == 0 ? "" : " (\(leftOut) similar errors before this one were not reported)"
        logger.error("\(error)\(rest)")
        poster.post(error)
    }

    // MARK: - Closing

    /// Saves what is unsaved and closes everything.
    func close() {
        queue.perform {
            handle(.close)
            run()
        }
    }

    /// Does the same without waiting.
    func closeLater() {
        handle(.close)
        startRun()
    }

    /// Discards the work planned on the queue: nobody waits for it. A later write schedules a new
    /// run.
    func abandon() {
        shared.state.withLock { $0.driver.unschedule() }
        failWaiters()
    }

    // MARK: - Running

    /// Handles an event and carries out the steps that follow: a notice at once, others on the
    /// queue.
    private func receive(_ event: Driver.Event) {
        let now = shared.now()
        let (notice, mustRun) = shared.state.withLock { state in
            state.driver.handle(event, at: now)
            return (state.driver.nextNotice(at: now), state.driver.schedule())
        }
        if let notice { post(notice) }
        if mustRun { startRun() }
    }

    private func handle(_ event: Driver.Event) {
        shared.state.withLock { $0.driver.handle(event, at: shared.now()) }
    }

    func scheduleRun() {
        if shared.state.withLock({ $0.driver.schedule() }) { startRun() }
    }

    /// Call only if the driver's `schedule()` returned true.
    func startRun() { queue.enqueue { [self] in run() } }

    private func run() {
        while let step = shared.state.withLock({ $0.driver.next(at: shared.now()) }) {
            perform(step)
        }
        shell.storage.announce()
        if shared.state.withLock({ $0.driver.isClosed }) { failWaiters() }
        postStatus()
        scheduleWake()
    }

    private func perform(_ step: Driver.Step) {
        switch step {
        case .decide: decideConflicts()
        case .effect(.notify(let notice)): post(notice)
        case .effect(.finishSync(let id, let failure)):
            finish(id, throwing: failure.map(UbiquityError.init))
        case .synchronized(let isSaved): isSynchronized = isSaved
        case .report(let failure, let isOfServer):
            report(UbiquityError(isOfServer ? .notTaken : .storage, failure))
        default:
            let event = shell.perform(step, within: read(\.intake))
            if let event { handle(event) }
            if step == .close { closed.signal() }
            // After everything that callers wait for now.
            if case .effect(.save) = step { queue.enqueue { [shell] in shell.storage.tidy() } }
        }
    }

    /// Lets the app's own rules merge what waits for them. They are called without the lock, so that
    /// they may use the store.
    func decideConflicts() {
        while let conflict = shared.state.withLock({ $0.driver.engine.takeConflict() }) {
            let value = conflict.result
            let mustRun = shared.state.withLock { state in
                state.driver.engine.decide(conflict, as: value)
                // There may be a notice, and the queue may have found nothing to do meanwhile.
                return state.driver.schedule()
            }
            if mustRun { startRun() }
        }
    }

    private func post(_ notice: Notice) {
        poster.post(notice) { [weak self] in self?.receive(.engine(.notified)) }
    }

    private func postStatus() {
        guard poster.statuses.hasListeners else { return }
        let status = status
        guard status != postedStatus else { return }
        postedStatus = status
        poster.post(status)
    }

    private func scheduleWake() {
        cancelWake?()
        cancelWake = nil
        guard let wake = shared.state.withLock({ $0.driver.nextWake }) else { return }
        let milliseconds = max(1, min(wake - shared.now().uptime, 86_400_000))
        cancelWake = queue.enqueue(after: milliseconds) { [weak self] in self?.run() }
    }
}

/// A store's engine and its driver, shared by the app's threads and the driver's queue.
///
/// Shared state: `state`, guarded by its mutex, which is only held while the engine computes. No
/// slow operation and no callback of the app runs meanwhile.
///
/// An object of its own without weak references, which would make each call of the app count
/// references the slow way.
final class SharedEngine: Sendable {
    struct State {
        var driver: Driver
        /// The waiting callers of round trips, by the engine's number. There are few, and a
        /// dictionary's type would have to be instantiated while a store opens.
        var waiters: [(request: Int, continuation: CheckedContinuation<Void, any Error>)] = []
        private(set) var questions = 0

        /// A number for a caller that waits for a request outside the sync. The engine's are
        /// positive.
        mutating func newQuestion() -> Int {
            questions -= 1
            return questions
        }

        mutating func takeWaiter(_ request: Int) -> CheckedContinuation<Void, any Error>? {
            waiters.firstIndex { $0.request == request }
                .map { waiters.remove(at: $0).continuation }
        }
    }

    let state: Mutex<State>
    let now: @Sendable () -> ClockReading

    init(_ driver: Driver, now: @escaping @Sendable () -> ClockReading) {
        state = Mutex(State(driver: driver))
        self.now = now
    }

    /// Reads a value. The body must be short.
    @inline(__always)
    func value<Result: Sendable>(
        _ key: Key, _ body: (PropertyListValue) -> Result?
    ) -> Result? {
        state.withLock { $0.driver.engine.value(key).flatMap(body) }
    }

    struct WriteOutcome {
        /// Whether the caller must start a run: there is something to save, or a refusal to report.
        var mustRun: Bool
        /// The reason the write was refused; nil if it was not.
        var violation: LimitViolation?
        /// The keys whose policy could not merge the written value.
        var misfits: Set<Key>

        /// Whether values wait for the app's own rule.
        var hasConflict: Bool

        /// Whether nothing is left to do, as in a burst of writes.
        var isComplete: Bool { !mustRun && violation == nil && misfits.isEmpty && !hasConflict }
    }

    func write(_ key: Key, _ content: Content) -> WriteOutcome {
        write { engine, now throws(LimitViolation) in try engine.write(key, content, at: now) }
    }

    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) -> WriteOutcome {
        // Read without the lock: two writes of two threads have no defined order anyway.
        let now = now()
        return state.withLock { state in
            var violation: LimitViolation?
            do throws(LimitViolation) { try body(&state.driver.engine, now) } catch {
                violation = error
            }
            return WriteOutcome(
                mustRun: state.driver.schedule(), violation: violation,
                misfits: state.driver.engine.takeMisfits(),
                hasConflict: state.driver.engine.hasConflict)
        }
    }
}
