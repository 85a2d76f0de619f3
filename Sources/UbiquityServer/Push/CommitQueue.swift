// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Commits pushes in groups: all waiting pushes go into one transaction with one flush of the disk,
/// and are answered afterwards. The more there are, the larger the groups, up to a maximum of work.
/// Accounts take turns, so that an account's waiting pushes delay another one's by at most a group.
///
/// State: `state`, the waiting pushes, guarded by its lock, because requests come from any thread.
/// Everything else is confined to the one thread of `writer`; the lock of `crowded` is only for the
/// compiler.
final class CommitQueue: Sendable {
    /// A class, because it is moved from queue to queue.
    private final class Waiting: Sendable {
        let push: PendingPush
        let bytes: Int
        let loop: any EventLoop
        let answer: @Sendable (Result<CommittedPush, any Error>) -> Void

        init(
            _ push: PendingPush, bytes: Int, on loop: any EventLoop,
            _ answer: @escaping @Sendable (Result<CommittedPush, any Error>) -> Void
        ) {
            self.push = push
            self.bytes = bytes
            self.loop = loop
            self.answer = answer
        }
    }

    private struct State {
        var waiting = FairQueue<AccountID, Waiting>()
        var bytes = 0
        var isScheduled = false
    }

    /// A larger group would not be faster, and would delay its first push.
    private static let groupMax = 512
    /// The maximum cost of a group's pushes together. A more expensive push is committed alone.
    private static let groupBytesMax = 8 << 20
    /// For one account: even a small push may require reading a whole store.
    private static let groupPushesPerAccountMax = 16

    /// The stores with too many tombstones. Cleared by compaction.
    let crowded = Mutex<Set<StoreReference>>([])
    private let state = Mutex(State())
    private let storage: any ServerStorage
    private let writer: BlockingThreads
    private let hub: PushHub
    private let settings: ServerSettings
    private let metrics: ServerMetrics
    private let logger: Logger
    /// The random number of this run of the server.
    private let run = UInt64.random(in: 1 ... .max)

    init(
        storage: any ServerStorage, writer: BlockingThreads, hub: PushHub,
        settings: ServerSettings, metrics: ServerMetrics = ServerMetrics(), logger: Logger
    ) {
        self.storage = storage
        self.writer = writer
        self.hub = hub
        self.settings = settings
        self.metrics = metrics
        self.logger = logger
    }

    /// Calls back when the push is on stable storage, or with ``PushRefusal``, ``StorageError`` or
    /// ``Busy``; nothing of it was stored then.
    /// - Parameters:
    ///   - bytes: Its share of the queue's limit.
    ///   - loop: Where to call back.
    /// - Throws: ``Busy`` if the queue is full.
    func commit(
        _ push: PendingPush, bytes: Int, on loop: any EventLoop,
        then: @escaping @Sendable (Result<CommittedPush, any Error>) -> Void
    ) throws(Busy) {
        guard enqueue(Waiting(push, bytes: bytes, on: loop, then)) else { throw Busy() }
    }

    /// The number of pushes that wait for a group.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    private func enqueue(_ waiting: Waiting) -> Bool {
        state.withLock { state in
            guard state.waiting.count < settings.waitingPushesMax,
                state.bytes + waiting.bytes <= settings.waitingPushBytesMax || state.bytes == 0
            else { return false }
            if !state.isScheduled {
                guard writer.submit({ [self] in commitWaiting() }) else { return false }
                state.isScheduled = true
            }
            state.waiting.append(waiting, of: waiting.push.store.account)
            state.bytes += waiting.bytes
            return true
        }
    }

    private func commitWaiting() {
        let group = takeGroup()
        guard !group.isEmpty else { return }
        let admission = PushAdmission(limits: settings.limits, now: settings.clock.now())
        let rules = CommitRules(
            admission: admission, run: run, storesPerAccountMax: settings.storesPerAccountMax)
        let start = NIODeadline.now()
        var work = LoopWork()
        do throws(StorageError) {
            let results = try storage.commit(group.map(\.push), rules: rules)
            for (waiting, result) in zip(group, results) {
                guard let push = try? result.get() else { continue }
                publish(push, to: waiting.push.store, through: &work)
            }
            for (waiting, result) in zip(group, results) {
                work.add(on: waiting.loop) { waiting.answer(result.mapError { $0 }) }
            }
            work.submit()
            count(results, since: start)
        } catch {
            logger.error("A commit failed.", metadata: ["reason": "\(error)"])
            fail(group, error)
        }
        commitMore()
    }

    private func fail(_ pushes: [Waiting], _ error: any Error) {
        var work = LoopWork()
        for waiting in pushes {
            work.add(on: waiting.loop) { waiting.answer(.failure(error)) }
        }
        work.submit()
    }

    /// Counts each transaction by its outcome, and a refused push as one.
    private func count(
        _ results: [Result<CommittedPush, PushRefusal>], since start: NIODeadline
    ) {
        var transactions: [String: Int] = [:]
        for result in results {
            switch result {
            case .failure(let refusal): transactions[refusal.label, default: 0] += 1
            case .success(let push):
                for result in push.results { transactions[result.label, default: 0] += 1 }
            }
        }
        let elapsed = NIODeadline.now() - start
        metrics.committed(
            pushes: results.count, transactions: transactions,
            seconds: Double(elapsed.nanoseconds) / 1e9)
    }

    private func takeGroup() -> [Waiting] {
        state.withLock { state in
            var (count, bytes) = (0, 0)
            var counts: [AccountID: Int] = [:]
            let group = state.waiting.take { next in
                let account = next.push.store.account
                guard
                    count == 0
                        || count < Self.groupMax && bytes + next.bytes <= Self.groupBytesMax
                            && counts[account, default: 0] < Self.groupPushesPerAccountMax
                else { return false }
                (count, bytes) = (count + 1, bytes + next.bytes)
                counts[account, default: 0] += 1
                return true
            }
            state.bytes -= bytes
            return group
        }
    }

    /// Commits later arrivals in a job of its own, so that other jobs of this thread get their
    /// turn.
    private func commitMore() {
        let stranded: [Waiting] = state.withLock { state in
            state.isScheduled = !state.waiting.isEmpty
            guard state.isScheduled, !writer.submit({ [self] in commitWaiting() }) else {
                return []
            }
            defer { state = State() }
            return state.waiting.all
        }
        fail(stranded, Busy())
    }

    private func publish(
        _ push: CommittedPush, to store: StoreReference, through work: inout LoopWork
    ) {
        guard !push.writes.isEmpty else { return }
        hub.publish(push, of: store, through: &work)
        if push.deletions > settings.deletionsPerStoreMax
            || push.foldedCount > CompactionRule.folded.tombstonesMax
        {
            crowded.withLock { _ = $0.insert(store) }
        }
    }
}

extension TransactionResult {
    /// The name in the metrics.
    fileprivate var label: String {
        switch self {
        case .committed: "committed"
        case .refused(let refusal): refusal.code
        }
    }
}
