// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Commits pushes in groups, and answers them afterwards: carries out ``PushQueue``, which decides.
///
/// State: `state`, the waiting pushes, guarded by its lock, because requests come from any thread,
/// and `crowded`, guarded by its own.
final class CommitQueue: Sendable {
    /// A class, because it is moved from queue to queue.
    private final class Waiting: Sendable {
        let push: PendingPush
        let loop: any EventLoop
        let answer: @Sendable (Result<CommittedPush, any Error>) -> Void

        init(
            _ push: PendingPush, on loop: any EventLoop,
            _ answer: @escaping @Sendable (Result<CommittedPush, any Error>) -> Void
        ) {
            (self.push, self.loop, self.answer) = (push, loop, answer)
        }
    }

    private typealias Queue = PushQueue<StoreReference, Waiting>

    /// The stores with too many tombstones. Cleared by compaction.
    let crowded = Mutex<Set<StoreReference>>([])
    private let state: Mutex<Queue>
    private let storage: any ServerStorage
    /// A thread for each lane.
    private let lanes: [BlockingThreads]
    private let hub: PushHub
    private let settings: ServerSettings
    private let metrics: ServerMetrics
    private let logger: Logger

    /// - Parameter lanes: One thread each, at most ``ServerStorage/commitLanes``.
    init(
        storage: any ServerStorage, lanes: [BlockingThreads], hub: PushHub,
        settings: ServerSettings, metrics: ServerMetrics = ServerMetrics(), logger: Logger
    ) {
        self.storage = storage
        self.lanes = lanes
        state = Mutex(
            Queue(
                lanes: lanes.count, countMax: settings.constants.waitingPushesMax,
                bytesMax: settings.waitingPushBytesMax))
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
        let waiting = Queue.Waiting(
            account: push.store.account.rawValue, store: push.store, bytes: bytes,
            searches: push.push.transactions.contains { !$0.unkept.isEmpty },
            push: Waiting(push, on: loop, then))
        switch state.withLock({ $0.add(waiting) }) {
        case .refused: throw Busy()
        case .waits: break
        case .begins(let lane): begin(lane)
        }
    }

    /// The number of pushes that wait for a group.
    var waitingCount: Int { state.withLock(\.count) }

    /// Commits a group in a job of its own, so that other jobs of the lane's thread get their turn.
    private func begin(_ lane: Int) {
        guard !lanes[lane].submit({ [self] in commitGroup(in: lane) }) else { return }
        fail(state.withLock { $0.removeAll(of: lane) }.map(\.push), Busy())
    }

    private func commitGroup(in lane: Int) {
        let group = state.withLock { $0.takeGroup(of: lane) }.map(\.push)
        let admission = PushAdmission(
            limits: settings.limits, now: settings.clock.now(), history: settings.history)
        let rules = CommitRules(
            admission: admission, storesPerAccountMax: settings.constants.storesPerAccountMax)
        let start = NIODeadline.now()
        do throws(StorageError) {
            let results = try storage.commit(group.map(\.push), rules: rules)
            var answers = LoopWork()
            var commits: [PushHub.Commit] = []
            for (waiting, result) in zip(group, results) {
                answers.add(on: waiting.loop) { waiting.answer(result.mapError { $0 }) }
                if let push = try? result.get() { commits.append((waiting.push.store, push)) }
            }
            hub.publish(commits, then: answers)
            noteCrowded(commits)
            count(results, since: start)
        } catch {
            logger.error("A commit failed.", metadata: ["reason": "\(error)"])
            fail(group, error)
        }
        if state.withLock({ $0.finish(lane: lane) }) { begin(lane) }
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
        metrics.committed(
            pushes: results.count, transactions: transactions, seconds: start.secondsAgo)
    }

    private func noteCrowded(_ commits: [PushHub.Commit]) {
        for (store, push) in commits
        where !push.writes.isEmpty
            && (push.deletions > settings.constants.deletionsPerStoreMax
                || push.foldedCount > CompactionRule.folded.tombstonesMax)
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
