// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import Synchronization
internal import UbiquityCore

/// Commits pushes in groups: all waiting pushes go into one transaction with one flush of the disk,
/// and are answered afterwards. The more there are, the larger the groups, up to a maximum of work.
/// Accounts take turns, so that an account's waiting pushes delay another one's by at most a group.
///
/// Each account has one of the lanes, which commit at the same time, as many as the storage permits.
///
/// State: `state`, the waiting pushes, guarded by its lock, because requests come from any thread,
/// and `crowded`, guarded by its own.
final class CommitQueue: Sendable {
    /// A class, because it is moved from queue to queue.
    private final class Waiting: Sendable {
        let push: PendingPush
        let bytes: Int
        /// Whether its store's history may have to be read.
        let searches: Bool
        let loop: any EventLoop
        let answer: @Sendable (Result<CommittedPush, any Error>) -> Void

        init(
            _ push: PendingPush, bytes: Int, on loop: any EventLoop,
            _ answer: @escaping @Sendable (Result<CommittedPush, any Error>) -> Void
        ) {
            self.push = push
            self.bytes = bytes
            searches = push.push.transactions.contains { !$0.unkept.isEmpty }
            self.loop = loop
            self.answer = answer
        }
    }

    private struct Lane {
        var waiting = FairQueue<AccountID, Waiting>()
        var isScheduled = false
    }

    private struct State {
        var lanes: [Lane]
        /// The bytes that wait in all lanes.
        var bytes = 0

        var count: Int { lanes.reduce(0) { $0 + $1.waiting.count } }
    }

    /// A larger group would not be faster, and would delay its first push.
    private static let groupMax = 512
    /// The maximum cost of a group's pushes together. A more expensive push is committed alone.
    private static let groupBytesMax = 8 << 20
    /// For one account: even a small push may require reading a whole store.
    private static let groupPushesPerAccountMax = 16
    /// The most histories that a group reads for what must not be kept, each once. That takes
    /// milliseconds.
    private static let groupSearchesMax = 4

    /// The stores with too many tombstones. Cleared by compaction.
    let crowded = Mutex<Set<StoreReference>>([])
    private let state: Mutex<State>
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
        state = Mutex(State(lanes: lanes.map { _ in Lane() }))
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
    var waitingCount: Int { state.withLock { $0.count } }

    private func lane(of account: AccountID) -> Int {
        Int(account.rawValue % UInt64(lanes.count))
    }

    private func enqueue(_ waiting: Waiting) -> Bool {
        let account = waiting.push.store.account
        let lane = lane(of: account)
        return state.withLock { state in
            guard state.count < settings.constants.waitingPushesMax,
                state.bytes + waiting.bytes <= settings.waitingPushBytesMax || state.bytes == 0
            else { return false }
            if !state.lanes[lane].isScheduled {
                guard lanes[lane].submit({ [self] in commitWaiting(in: lane) }) else {
                    return false
                }
                state.lanes[lane].isScheduled = true
            }
            state.lanes[lane].waiting.append(waiting, of: account)
            state.bytes += waiting.bytes
            return true
        }
    }

    private func commitWaiting(in lane: Int) {
        let group = takeGroup(of: lane)
        guard !group.isEmpty else { return }
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
        commitMore(in: lane)
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

    private func takeGroup(of lane: Int) -> [Waiting] {
        state.withLock { state in
            var (count, bytes) = (0, 0)
            var searched: Set<StoreReference> = []
            func mayJoin(_ next: Waiting) -> Bool {
                guard count > 0 else { return true }
                return count < Self.groupMax && bytes + next.bytes <= Self.groupBytesMax
                    && (!next.searches || searched.contains(next.push.store)
                        || searched.count < Self.groupSearchesMax)
            }
            let group = state.lanes[lane].waiting.take(rounds: Self.groupPushesPerAccountMax) {
                next in
                guard mayJoin(next) else { return false }
                (count, bytes) = (count + 1, bytes + next.bytes)
                if next.searches { searched.insert(next.push.store) }
                return true
            }
            state.bytes -= bytes
            return group
        }
    }

    /// Commits later arrivals in a job of its own, so that other jobs of this thread get their
    /// turn.
    private func commitMore(in lane: Int) {
        let stranded: [Waiting] = state.withLock { state in
            let waiting = state.lanes[lane].waiting
            state.lanes[lane].isScheduled = waiting.count > 0
            guard waiting.count > 0, !lanes[lane].submit({ [self] in commitWaiting(in: lane) })
            else { return [] }
            state.lanes[lane] = Lane()
            state.bytes -= waiting.all.reduce(0) { $0 + $1.bytes }
            return waiting.all
        }
        fail(stranded, Busy())
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
