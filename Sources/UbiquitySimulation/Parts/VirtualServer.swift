// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The server: group commits with a flush before the answer, streams, and epochs. Its decisions are
/// made by the rules that ship.
package final class VirtualServer {
    private unowned let world: any VirtualWorld
    /// The content of stable storage. A value, so that a copy is a backup.
    package private(set) var stores: [StoreReference: VirtualStore] = [:]
    package private(set) var isRunning = true
    /// The number of starts. Pending actions of an earlier run are dropped.
    private var run = 1
    /// The running time of earlier runs, and the start of the current one.
    private var ran: Int64 = 0
    private var startedAt: Int64
    package var clockError: Int64 = 0 {
        didSet { greatestError = max(greatestError, clockError) }
    }
    private var greatestError = Int64.min
    package var limits: StoreLimits
    package var allowance: Allowance
    /// The maximum of streams for an account.
    package var streamsMax = Int.max
    /// See ``PushAdmission/partsMax``.
    package var partsMax = 60
    /// The rule for dropping folded increments of counters.
    package var foldsCompaction = CompactionRule.folded
    /// The longest time of a flush, in milliseconds.
    private let flushMax: Int64
    /// The additional time of each commit, in milliseconds.
    package var slowness: Int64 = 0
    /// Refuses all credentials until then.
    package var deniesUntil: Int64 = 0
    /// Answers that it is busy until then.
    package var isBusyUntil: Int64 = 0
    private var buckets: [Client: TokenBucket] = [:]
    private var waiting: [Waiting] = []
    private var isCommitting = false
    private var group: [Waiting] = []
    private var streams: [StoreReference: [Subscriber]] = [:]
    /// Last-seen information, which is lost if the server ends before it is stored.
    private var passedRevisions: [DeviceStore: Int64] = [:]
    private var seen: [Client: Int64] = [:]
    /// The disk refuses the next commit.
    private var refusesCommit = false
    private var backup: [StoreReference: VirtualStore] = [:]

    private struct Client: Hashable {
        var account: Int
        var device: DeviceID
    }

    private struct DeviceStore: Hashable {
        var store: StoreReference
        var device: DeviceID
    }

    /// A subscribed stream. Commits wait until it has read the store.
    private final class Subscriber {
        let stream: VirtualStream
        var start: StreamStart?
        var waiting: [ChangeSet] = []

        init(_ stream: VirtualStream) { self.stream = stream }

        func offer(_ changes: ChangeSet) {
            guard let start else { return waiting.append(changes) }
            guard start.isNews(Position(changes.cursor)?.revision ?? 0) else { return }
            stream.send(.changes(changes))
        }

        func begin(with start: StreamStart) {
            self.start = start
            for message in start.messages { stream.send(message) }
            for changes in waiting { offer(changes) }
            waiting = []
        }
    }

    private struct Waiting {
        var store: StoreReference
        var device: DeviceID
        var push: Push
        var reply: (Result<PushAnswer, LinkFailure>) -> Void
    }

    /// Short enough to take effect in runs of some minutes.
    private static let compaction = CompactionRule(
        retentionMilliseconds: 20_000, liveMilliseconds: 60_000, tombstonesMax: 3)

    package init(
        world: any VirtualWorld, limits: StoreLimits, allowance: Allowance, flushMax: Int64
    ) {
        self.world = world
        startedAt = world.now
        self.limits = limits
        self.allowance = allowance
        self.flushMax = flushMax
    }

    package var now: Int64 { world.now + clockError }

    /// The running time of all runs together.
    private var running: Int64 { ran + (isRunning ? world.now - startedAt : 0) }

    /// The time that its clock would show if it had never been set back.
    var greatestNow: Int64 { world.now + max(greatestError, clockError) }

    // MARK: - Requests

    package func push(
        _ push: Push, to store: StoreReference, by device: DeviceID,
        reply: @escaping (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        do throws(LinkFailure) {
            try admit()
            try take(Client(account: store.account, device: device), bytes: push.bytes)
        } catch { return reply(.failure(error)) }
        waiting.append(Waiting(store: store, device: device, push: push, reply: reply))
        startCommit()
    }

    private func admit() throws(LinkFailure) {
        guard isRunning else { throw LinkFailure(.unreachable, "no server") }
        if world.now < deniesUntil { throw LinkFailure(.unauthorized, "denied") }
        if world.now < isBusyUntil {
            throw LinkFailure(.busy(retryAfterMilliseconds: isBusyUntil - world.now), "busy")
        }
    }

    private func take(_ client: Client, bytes: Int) throws(LinkFailure) {
        var bucket = buckets[client] ?? TokenBucket(allowance, now: world.now)
        let wait = bucket.take(now: world.now)
        if wait == nil { bucket.charge(bytes: bytes, now: world.now) }
        buckets[client] = bucket
        if let wait { throw LinkFailure(.busy(retryAfterMilliseconds: wait), "too often") }
    }

    package func pull(
        _ store: StoreReference, since cursor: Cursor?, withConfig: Bool, by device: DeviceID
    ) -> Result<ChangeSet, LinkFailure> {
        do throws(LinkFailure) {
            try admit()
            var changes = try read(store, since: cursor, by: device)
            if withConfig { changes.config = config }
            return .success(changes)
        } catch { return .failure(error) }
    }

    private func read(
        _ name: StoreReference, since cursor: Cursor?, by device: DeviceID
    ) throws(LinkFailure) -> ChangeSet {
        let changes = try (stores[name] ?? VirtualStore()).changes(since: cursor, now: now)
        if let passed = Position(cursor ?? changes.cursor)?.revision {
            passedRevisions[DeviceStore(store: name, device: device)] = passed
        }
        seen[Client(account: name.account, device: device)] = now
        return changes
    }

    /// Sends the changes since the cursor, then each commit as it happens. Others may commit
    /// between the subscription and the read.
    package func open(_ stream: VirtualStream, since cursor: Cursor?) {
        do throws(LinkFailure) {
            try admit()
            guard !hasAllStreams(stream.store.account) else {
                throw LinkFailure(.tooManyStreams(retryAfterMilliseconds: 30_000), "too many")
            }
        } catch { return stream.breakOff(error) }
        let subscriber = Subscriber(stream)
        streams[stream.store, default: []].append(subscriber)
        let run = run
        world.after(world.chance.int64(0...flushMax)) { [self] in
            guard isRunning, run == self.run, isSubscribed(stream) else { return }
            begin(subscriber, since: cursor)
        }
    }

    private func begin(_ subscriber: Subscriber, since cursor: Cursor?) {
        let stream = subscriber.stream
        do throws(LinkFailure) {
            let changes = try read(stream.store, since: cursor, by: stream.device)
            subscriber.begin(
                with: StreamStart(changes, isResumed: cursor != nil, config))
        } catch {
            unsubscribe(stream)
            stream.breakOff(error)
        }
    }

    private func isSubscribed(_ stream: VirtualStream) -> Bool {
        streams[stream.store]?.contains { $0.stream === stream } ?? false
    }

    /// Whether the account has reached its maximum of streams.
    package func hasAllStreams(_ account: Int) -> Bool {
        streams.reduce(0) { $0 + ($1.key.account == account ? $1.value.count : 0) } >= streamsMax
    }

    private var config: ServerConfig {
        ServerConfig(
            serverMilliseconds: now, limits: limits, allowance: allowance,
            deletionsRememberedSeconds: Self.compaction.retentionMilliseconds / 1_000)
    }

    package func unsubscribe(_ stream: VirtualStream) {
        streams[stream.store]?.removeAll { $0.stream === stream }
    }

    // MARK: - Commits

    private func startCommit() {
        guard !isCommitting, !waiting.isEmpty else { return }
        isCommitting = true
        (group, waiting) = (waiting, [])
        let run = run
        world.after(world.chance.int64(0...flushMax) + slowness) { [self] in
            guard isRunning, run == self.run else { return }
            finishCommit()
        }
    }

    private func finishCommit() {
        let done = refusesCommit ? refuse(group) : commit(group)
        refusesCommit = false
        isCommitting = false
        group = []
        for publish in done { publish() }
        startCommit()
    }

    /// The disk refuses the write: nothing of the group was stored.
    private func refuse(_ group: [Waiting]) -> [() -> Void] {
        group.map { waiting in
            { waiting.reply(.failure(LinkFailure(.busy(retryAfterMilliseconds: 5_000), "disk"))) }
        }
    }

    /// Writes the group to stable storage.
    /// - Returns: The replies to each push, to be sent afterwards.
    private func commit(_ group: [Waiting]) -> [() -> Void] {
        group.map { waiting in
            var store = stores[waiting.store] ?? VirtualStore()
            let before = store.records
            do throws(ClockAhead) {
                let admission = PushAdmission(limits: limits, now: now, partsMax: partsMax)
                let admitted = try store.admit(
                    waiting.push, by: admission, in: epoch(of: waiting.store), running: running)
                stores[waiting.store] = store
                world.note(
                    .committed(
                        Commit(
                            store: waiting.store, before: before, after: store.records,
                            position: admitted.position, push: waiting.push,
                            results: admitted.results, writes: admitted.writes, limits: limits,
                            serverMilliseconds: now, newestCompacted: store.state.newestCompacted,
                            device: waiting.device, folded: admitted.folded,
                            partsMax: partsMax)))
                return { [self] in publish(admitted, of: waiting) }
            } catch {
                let failure = LinkFailure(
                    .clockAhead(serverMilliseconds: error.serverMilliseconds), "ahead")
                return { waiting.reply(.failure(failure)) }
            }
        }
    }

    private func publish(_ push: CommittedPush, of waiting: Waiting) {
        waiting.reply(.success(push.answer))
        guard !push.writes.isEmpty else { return }
        for subscriber in streams[waiting.store] ?? [] { subscriber.offer(push.changes) }
    }

    // MARK: - Faults

    /// Ends abruptly. The commit under way is on stable storage or is not; nobody is told.
    package func crash() {
        guard isRunning else { return }
        ran = running
        isRunning = false
        if isCommitting, world.chance.coin() { _ = commit(group) }
        isCommitting = false
        let unanswered = group + waiting
        (group, waiting) = ([], [])
        (buckets, passedRevisions) = ([:], [:])
        for push in unanswered { push.reply(.failure(LinkFailure(.unreachable, "reset"))) }
        let all = streams.keys.sorted { ($0.account, $0.store) < ($1.account, $1.store) }
            .flatMap { streams[$0] ?? [] }.map(\.stream)
        streams = [:]
        for stream in all { stream.lose() }
    }

    package func start() {
        guard !isRunning else { return }
        isRunning = true
        startedAt = world.now
        run += 1
    }

    private func epoch(of store: StoreReference) -> UInt64 {
        Position.epoch(ofRun: UInt64(run), store: "\(store)")
    }

    func makeBackup() { backup = stores }

    /// Replaces its storage by an older copy, and starts with it.
    func restore() { restore(backup) }

    package func restore(_ backup: [StoreReference: VirtualStore]) {
        crash()
        stores = backup
        world.note(.serverRestored(stores.mapValues { $0.state.lineage.position }))
    }

    func overflow() {
        for stream in streams.values.flatMap(\.self).map(\.stream).sorted(by: { $0.id < $1.id })
        where world.chance.coin() {
            stream.send(.resync)
            unsubscribe(stream)
        }
    }

    func compactTombstones() { compactTombstones(by: Self.compaction) }

    package func compactTombstones(by rule: CompactionRule) {
        for (deviceStore, revision) in passedRevisions {
            stores[deviceStore.store]?.pass(revision, by: deviceStore.device)
        }
        passedRevisions = [:]
        for name in stores.keys.sorted(by: { ($0.account, $0.store) < ($1.account, $1.store) }) {
            let compacted = stores[name]?.compact(rule, running: running) { device in
                let seen = seen[Client(account: name.account, device: device)]
                return seen.map { $0 >= now - rule.liveMilliseconds } ?? false
            }
            guard let compacted, !compacted.isEmpty else { continue }
            let left = stores[name]?.state.deletions ?? 0
            world.note(.compacted(name, compacted, left: left, rule))
        }
        compactFolded(by: foldsCompaction)
    }

    func compactFolded(by rule: CompactionRule) {
        for name in stores.keys { stores[name]?.compactFolded(rule, running: running) }
    }

    /// Sets its clock to the time without any set-backs, so that nobody has to wait for it.
    func setClockForward() { clockError = max(greatestError, clockError) }

    func refuseCommit() { refusesCommit = true }
}
