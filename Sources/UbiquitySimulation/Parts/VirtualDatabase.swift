// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The database of a server: the rows of its stores, the name of their history, and the clock of
/// all decisions. Its decisions are made by the rules that ship. One node has it to itself, or
/// several share it; then a standby follows it.
final class VirtualDatabase {
    /// A value, so that a copy is a backup.
    typealias Rows = [StoreReference: VirtualStore]

    private unowned let world: any VirtualWorld
    private(set) var rows: Rows = [:]
    private(set) var isRunning = true
    /// Names the history: the number of starts, promotions included.
    private(set) var run = 1
    /// The running time of earlier runs, and the start of the current one.
    private var ran: Int64 = 0
    private var startedAt: Int64
    var clockError: Int64 = 0 {
        didSet { greatestError = max(greatestError, clockError) }
    }
    private var greatestError = Int64.min
    private var backup: Rows = [:]
    private var seen: [Client: Int64] = [:]
    /// The stores whose rows another session has locked.
    var lockedStores: Set<StoreReference> = []
    var historyLimits = HistoryLimits()
    /// Whether all versions are logged, for checkers.
    var logsVersions = false

    // The standby; nil if there is none.

    /// Whether commits wait for the standby.
    private let isSynchronous: Bool?
    /// The rows after each of the last changes. The standby has the first of them.
    private var history: [Rows] = [[:]]
    /// The number of the last change.
    private var lastChange = 0
    /// Changes with each promotion and restore.
    private var timeline = 1
    private var replicatedUntil: Int64 = 0
    /// Called once, before the standby has the next commit or soon after.
    var duringCommit: (() -> Void)?

    /// The greatest lag of the standby, in milliseconds.
    private static let lagMax: Int64 = 5_000

    struct Client: Hashable {
        var account: Int
        var device: DeviceID
    }

    struct DeviceStore: Hashable {
        var store: StoreReference
        var device: DeviceID
    }

    /// - Parameter isSynchronous: Nil without a standby.
    init(world: any VirtualWorld, isSynchronous: Bool?) {
        self.world = world
        self.isSynchronous = isSynchronous
        startedAt = world.now
    }

    var now: Int64 { world.now + clockError }

    /// The running time of all runs together.
    private var running: Int64 { ran + (isRunning ? world.now - startedAt : 0) }

    /// The time that its clock would show if it had never been set back.
    var greatestNow: Int64 { world.now + max(greatestError, clockError) }

    /// Sets its clock to the time without any set-backs, so that nobody has to wait for it.
    func setClockForward() { clockError = max(greatestError, clockError) }

    /// The history of its stores. With a standby it has a timeline, as PostgreSQL's has.
    var name: DatabaseHistory {
        let primary = DatabaseHistory.Primary(
            system: 1, timeline: UInt32(timeline), start: UInt64(run))
        return DatabaseHistory(
            primary: isSynchronous == nil ? nil : primary, name: UInt64(timeline << 32 | run))
    }

    private func epoch(of store: StoreReference) -> UInt64 {
        Position.epoch(in: name) { UInt32(StableHash("\(store)", seed: ~$0).value >> 32) }
            ?? Position.epoch(ofRun: UInt64(run), store: "\(store)")
    }

    // MARK: - Reading and writing

    func position(of store: StoreReference) -> Position {
        rows[store]?.state.lineage.position ?? Position(epoch: 0, revision: 0)
    }

    /// From one snapshot.
    func changes(
        of store: StoreReference, since cursor: Cursor?, now: Int64
    ) throws(LinkFailure) -> ChangeSet {
        if isSynchronous != nil { world.note(.read(store, position(of: store))) }
        return try (rows[store] ?? VirtualStore()).changes(since: cursor, now: now)
    }

    /// Decides on a push by the rows as they are, and stores its changes.
    func commit(
        _ push: Push, to name: StoreReference, limits: StoreLimits, partsMax: Int
    ) -> Result<CommittedPush, LinkFailure> {
        if let failure = refusal(of: push.generation, name) { return .failure(failure) }
        var store = rows[name] ?? VirtualStore(log: logsVersions ? VersionLog() : nil)
        let before = store.records
        do throws(ClockAhead) {
            var admission = PushAdmission(
                limits: limits, now: now, partsMax: partsMax, history: historyLimits)
            admission.generation = world.generation(of: name.account)
            let opener = world.opener(of: name)
            let admitted = try store.admit(
                push, by: admission, in: epoch(of: name), running: running, opener)
            rows[name] = store
            var commit = Commit(
                store: name, before: opener.opened(before), after: opener.opened(store.records),
                position: admitted.position, push: opener.opened(push),
                results: opener.opened(admitted.results), writes: opener.opened(admitted.writes),
                limits: limits, serverMilliseconds: now,
                newestCompacted: store.state.newestCompacted, folded: admitted.folded,
                partsMax: partsMax)
            commit.isSealed = admission.generation > 0
            commit.readable = store.unsealed(with: admission.generation)
            commit.forgeries = admitted.writes.last.map(opener.forgeries) ?? []
            world.note(.committed(commit))
            // Looking at all of it takes a while.
            if admitted.position.revision.isMultiple(of: 8) { noteHistory(of: name) }
            if let body = duringCommit { world.after(world.chance.int64(0...20), body) }
            duringCommit = nil
            return .success(admitted)
        } catch {
            return .failure(
                LinkFailure(.clockAhead(serverMilliseconds: error.serverMilliseconds), "ahead"))
        }
    }

    /// The reason a request is not served that was made with a key of this generation; nil if it is.
    func refusal(of generation: UInt32, _ name: StoreReference) -> LinkFailure? {
        let own = world.generation(of: name.account)
        if generation == 0, world.hostile?.forgetsMark() ?? false { return nil }
        guard generation == own else {
            return LinkFailure(.sealed(generation: own), "another key")
        }
        let isReadable = rows[name]?.state.isReadable(with: own) ?? true
        return isReadable ? nil : LinkFailure(.busy(retryAfterMilliseconds: 5_000), "unsealed")
    }

    /// The stores of an account that are not sealed with the key of this generation yet.
    func unsealed(_ account: Int, with generation: UInt32) -> [Int] {
        let stores = rows.filter { name, store in
            name.account == account
                && store.state.contentGeneration.map { $0 != generation } ?? false
        }
        return stores.keys.map(\.store).sorted()
    }

    /// The stores as they are when an account gets a mark are what backups and the standby have of them:
    /// the mark is not lost with what came after.
    func keepMark() { (backup, history) = (rows, [rows]) }

    /// Replaces a store by what a device has sealed.
    func replace(_ name: StoreReference, by whole: WholeStore, limits: StoreLimits) -> LinkFailure?
    {
        guard var store = rows[name] else { return LinkFailure(.refused, "no store") }
        let before = store.records
        let opener = world.opener(of: name)
        let sealing = world.server.sealing(of: name.account)
        do throws(SealingRefusal) { try sealing.check(whole) } catch {
            return LinkFailure(.refused, "\(error)")
        }
        var admission = PushAdmission(limits: limits, now: now, history: historyLimits)
        admission.generation = sealing.generation
        do throws(WholeRefusal) {
            try store.replace(
                by: whole, by: admission, in: epoch(of: name), running: running, opener)
        } catch { return LinkFailure(.refused, "\(error)") }
        rows[name] = store
        let after = opener.opened(store.records)
        let gone = before.filter { after[$0.key] == nil && $0.value.content != .deleted }
        let writes =
            Array(after.values)
            + gone.values.map { Record(key: $0.key, content: .deleted, stamp: $0.stamp) }
        var commit = Commit(
            store: name, before: opener.opened(before), after: after,
            position: store.state.lineage.position, push: Push([]), results: [],
            writes: writes.sorted { $0.key < $1.key }, limits: limits, serverMilliseconds: now,
            newestCompacted: store.state.newestCompacted)
        (commit.isSealed, commit.isWhole) = (true, true)
        commit.readable = store.unsealed(with: admission.generation)
        world.note(.committed(commit))
        noteHistory(of: name)
        return nil
    }

    func see(_ client: Client, at time: Int64) { seen[client] = time }

    /// When the device was last seen; 0 if it never was.
    func seen(_ client: Client) -> Int64 { seen[client] ?? 0 }

    func pass(_ revisions: [DeviceStore: Int64]) {
        for (deviceStore, revision) in revisions {
            rows[deviceStore.store]?.pass(revision, by: deviceStore.device)
        }
    }

    func compactTombstones(by rule: CompactionRule) {
        for name in rows.keys.sorted() {
            let compacted = rows[name]?.compact(rule, running: running) { device in
                let seen = seen[Client(account: name.account, device: device)]
                return seen.map { $0 >= now - rule.liveMilliseconds } ?? false
            }
            guard let compacted, !compacted.isEmpty else { continue }
            let left = rows[name]?.state.deletions ?? 0
            world.note(.compacted(name, compacted, left: left, rule))
        }
    }

    func pruneHistories() {
        let rule = HistoryRule(historyLimits, now: now)
        for name in rows.keys.sorted() {
            noteHistory(of: name)
            rows[name]?.pruneHistory(rule)
            noteHistory(of: name)
        }
    }

    private func noteHistory(of name: StoreReference) {
        guard let store = rows[name], let log = store.log else { return }
        let opener = world.opener(of: name)
        let lines = store.history.lines(of: nil).map { line, content in
            let record = Record(key: line.key, content: content, stamp: line.stamp)
            return (line: line, content: opener.opened(record).content)
        }
        world.note(
            .kept(
                HistoryView(
                    store: name, lines: lines, log: log,
                    state: store.state, rule: HistoryRule(historyLimits, now: now),
                    greatestNow: greatestNow)))
    }

    func compactFolded(by rule: CompactionRule) {
        for name in rows.keys { rows[name]?.compactFolded(rule, running: running) }
    }

    // MARK: - Starting and stopping

    func stop() {
        guard isRunning else { return }
        ran = running
        isRunning = false
    }

    func start() {
        guard !isRunning else { return }
        isRunning = true
        startedAt = world.now
        run += 1
    }

    func makeBackup() { backup = rows }

    func restore() { restore(backup) }

    /// Replaces the rows by an older copy. Call this while it is stopped.
    func restore(_ older: Rows) { become(older, keepsAnswers: false) }

    private func become(_ older: Rows, keepsAnswers: Bool) {
        rows = older
        (history, timeline) = ([rows], timeline + 1)
        world.note(
            .serverRestored(
                rows.mapValues { $0.state.lineage.position }, keepsAnswers: keepsAnswers))
    }

    // MARK: - The standby

    /// Sends the changes since the last call to the standby.
    /// - Parameter durable: Called when the changes may be answered for, unless the database stops
    ///   before that.
    func replicate(then durable: @escaping () -> Void) {
        guard let isSynchronous else { return durable() }
        lastChange += 1
        history.append(rows)
        let lag = world.chance.int64(0...(isSynchronous ? 20 : Self.lagMax))
        replicatedUntil = max(replicatedUntil, world.now + lag)
        replicate(lastChange, on: timeline, at: replicatedUntil) { if isSynchronous { durable() } }
        if !isSynchronous { durable() }
    }

    private func replicate(
        _ change: Int, on timeline: Int, at time: Int64, then done: @escaping () -> Void
    ) {
        world.at(time) { [self] in
            guard timeline == self.timeline else { return }
            guard isRunning else {
                return replicate(change, on: timeline, at: world.now + 1_000, then: done)
            }
            let rest = lastChange - change + 1
            if history.count > rest { history.removeFirst(history.count - rest) }
            done()
        }
    }

    /// This database as it is, stopped and without a standby. When its machine comes back, it does not
    /// know that its standby has taken its place.
    func former() -> VirtualDatabase {
        let former = VirtualDatabase(world: world, isSynchronous: false)
        (former.rows, former.history, former.seen) = (rows, [rows], seen)
        (former.run, former.timeline, former.ran) = (run, timeline, running)
        (former.isRunning, former.clockError) = (false, clockError)
        (former.historyLimits, former.logsVersions) = (historyLimits, logsVersions)
        return former
    }

    /// The standby takes over, with at least what it has confirmed. Call this while it is stopped.
    func promoteStandby() {
        let kept = world.chance.int(0...history.count - 1)
        if kept < history.count - 1 {
            become(history[kept], keepsAnswers: isSynchronous == true)
            // The checkers know one line of commits, and a backup of what is lost is not on it.
            backup = rows
        } else {
            (history, timeline) = ([rows], timeline + 1)
        }
    }
}
