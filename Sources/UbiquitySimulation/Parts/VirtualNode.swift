// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A program that serves devices from the database: group commits that are answered once they are
/// durable, and streams. The only one, or one of several that share the database; then each tells
/// the others what it has committed, by hints.
package final class VirtualNode {
    private unowned let server: VirtualServer
    unowned let world: any VirtualWorld
    /// The database that it is connected to.
    private(set) var database: VirtualDatabase
    private var watch = HistoryWatch()
    private(set) var isRunning = true
    /// The number of starts. Pending actions of an earlier run are dropped.
    private var run = 1
    /// The lead of its clock over the database's. No decision depends on it.
    var clockError: Int64 = 0
    /// Whether it, or the load balancer, has noticed that it should get no requests.
    private(set) var isReady = true
    private var buckets: [VirtualDatabase.Client: TokenBucket] = [:]
    private var waiting: [Waiting] = []
    private var isCommitting = false
    private var group: [Waiting] = []
    /// Last-seen information, which is lost if the node ends before it is stored.
    private var passedRevisions: [VirtualDatabase.DeviceStore: Int64] = [:]
    /// The disk refuses the next commit.
    var refusesCommit = false
    private(set) lazy var hub = VirtualHub(node: self, isShared: server.isShared)

    // Of a group in a database that is shared:

    /// The number of the attempt. What belongs to an earlier one is ignored.
    private var attempt = 0
    /// The time after which the group is not tried again.
    private var retriesEnd: Int64 = 0
    private var isCommitted = false
    /// Whether the commit under way goes on while the node is stopped.
    private var isSent = false

    /// The work that arrived while it was stopped; nil while it is not.
    private var missed: [() -> Void]?

    private struct Waiting {
        var store: StoreReference
        var device: DeviceID
        var push: Push
        var reply: (Result<PushAnswer, LinkFailure>) -> Void
    }

    /// The time for which a group whose connection was lost is retried.
    private static let retryMilliseconds: Int64 = 5_000
    /// The time after which the load balancer notices that a node is stopped, or a node that its
    /// clock is wrong.
    private static let noticeMilliseconds: Int64 = 10_000

    init(server: VirtualServer, world: any VirtualWorld, database: VirtualDatabase) {
        self.server = server
        self.world = world
        self.database = database
    }

    /// The time of a round trip to the database, or half of it.
    var flight: Int64 { world.chance.int64(0...server.flushMax) }

    private var now: Int64 { database.now + clockError }

    // MARK: - Requests

    package func push(
        _ push: Push, to store: StoreReference, by device: DeviceID,
        reply: @escaping (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                try take(
                    VirtualDatabase.Client(account: store.account, device: device),
                    bytes: push.bytes)
            } catch { return reply(.failure(error)) }
            waiting.append(Waiting(store: store, device: device, push: push, reply: reply))
            startCommit()
        }
    }

    private func admit() throws(LinkFailure) {
        guard isRunning else { throw LinkFailure(.unreachable, "no server") }
        if world.now < server.deniesUntil { throw LinkFailure(.unauthorized, "denied") }
        if world.now < server.isBusyUntil {
            let rest = server.isBusyUntil - world.now
            throw LinkFailure(.busy(retryAfterMilliseconds: rest), "busy")
        }
    }

    private func take(
        _ client: VirtualDatabase.Client, bytes: Int
    ) throws(LinkFailure) {
        var bucket = buckets[client] ?? TokenBucket(server.allowance, now: world.now)
        let wait = bucket.take(now: world.now)
        if wait == nil { bucket.charge(bytes: bytes, now: world.now) }
        buckets[client] = bucket
        if let wait { throw LinkFailure(.busy(retryAfterMilliseconds: wait), "too often") }
    }

    package func pull(
        _ store: StoreReference, since cursor: Cursor?, isSaved: Bool, withConfig: Bool,
        by device: DeviceID, reply: @escaping (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                var changes = try read(store, since: cursor, isSaved: isSaved, by: device)
                if withConfig { changes.config = config }
                reply(.success(changes))
            } catch { reply(.failure(error)) }
        }
    }

    /// Answers a question about a store's history.
    package func ask<Answer>(
        _ store: StoreReference,
        _ question: @escaping (VirtualStore, HistoryRule) throws(LinkFailure) -> Answer,
        reply: @escaping (Result<Answer, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                guard database.isRunning else { throw Self.noDatabase }
                let rule = HistoryRule(HistoryLimits(), now: now)
                reply(.success(try question(database.rows[store] ?? VirtualStore(), rule)))
            } catch { reply(.failure(error)) }
        }
    }

    func read(
        _ store: StoreReference, since cursor: Cursor?, isSaved: Bool, by device: DeviceID
    ) throws(LinkFailure) -> ChangeSet {
        let changes = try changes(of: store, since: cursor)
        if isSaved, let passed = cursor.flatMap(Position.init) {
            note(passed.revision, of: store, by: device)
        }
        database.see(VirtualDatabase.Client(account: store.account, device: device), at: now)
        return changes
    }

    /// Includes what the node has not stored yet.
    /// - Parameter devices: The devices of the account.
    package func deliveries(
        of key: Key?, in store: StoreReference,
        to devices: [(DeviceID, name: String, clockError: Int64)], saved: Cursor?,
        by device: DeviceID, reply: @escaping (Result<[DeviceDelivery], LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) { try admit() } catch { return reply(.failure(error)) }
            let row = database.rows[store] ?? VirtualStore()
            if let passed = saved.flatMap(row.state.lineage.passed) {
                note(passed.revision, of: store, by: device)
            }
            let rule = row.deliveryRule(of: key)
            reply(
                .success(
                    devices.map { id, name, clockError in
                        let said = VirtualDatabase.DeviceStore(store: store, device: id)
                        let client = VirtualDatabase.Client(account: store.account, device: id)
                        return DeviceDelivery(
                            device: id, name: name, seenMilliseconds: database.seen(client),
                            clockAheadMilliseconds: clockError - self.clockError,
                            delivery: rule.delivery(
                                to: id, passed: passedRevisions[said] ?? row.passed[id]))
                    }))
        }
    }

    /// The device has said that it has saved everything up to this revision.
    private func note(_ passed: Int64, of store: StoreReference, by device: DeviceID) {
        passedRevisions[VirtualDatabase.DeviceStore(store: store, device: device)] = passed
    }

    func changes(of store: StoreReference, since cursor: Cursor?) throws(LinkFailure) -> ChangeSet {
        connect()
        guard database.isRunning else { throw Self.noDatabase }
        return try database.changes(of: store, since: cursor, now: now)
    }

    private static let noDatabase = LinkFailure(
        .busy(retryAfterMilliseconds: 1_000), "no database")

    /// Sends the changes since the cursor, then each commit as it happens. Others may commit
    /// between the subscription and the read.
    func open(_ stream: VirtualStream, since cursor: Cursor?, isSaved: Bool) {
        var isAwaited = true
        if missed != nil {
            world.after(VirtualStream.silenceMax) {
                if isAwaited { stream.breakOff(LinkFailure(.timedOut, "silence")) }
                isAwaited = false
            }
        }
        whenAwake { [self] in
            guard isAwaited else { return }
            isAwaited = false
            do throws(LinkFailure) {
                try admit()
                guard hub.streamCount(of: stream.store.account) < server.streamsMax else {
                    throw LinkFailure(.tooManyStreams(retryAfterMilliseconds: 30_000), "too many")
                }
            } catch { return stream.breakOff(error) }
            hub.subscribe(stream, since: cursor, isSaved: isSaved)
        }
    }

    var config: ServerConfig {
        ServerConfig(
            serverMilliseconds: now, limits: server.limits, allowance: server.allowance,
            deletionsRememberedSeconds: VirtualServer.compaction.retentionMilliseconds / 1_000)
    }

    // MARK: - Commits

    private func startCommit() {
        guard !isCommitting, !waiting.isEmpty else { return }
        isCommitting = true
        (group, waiting) = (waiting, [])
        retriesEnd = world.now + Self.retryMilliseconds
        sendCommit()
    }

    private func sendCommit() {
        attempt += 1
        let attempt = attempt
        after(flight + server.slowness, evenStopped: true) { [self] in
            guard attempt == self.attempt else { return }
            // What was not sent before the stop has to begin anew: the database has ended the
            // transaction.
            if missed != nil, !isSent {
                return whenAwake { [self] in if attempt == self.attempt { tryAgain() } }
            }
            server.isShared ? commitShared() : endCommit(decide())
        }
    }

    private func decide() -> [() -> Void] {
        defer { refusesCommit = false }
        return refusesCommit ? refuse(group) : commit(group)
    }

    private func endCommit(_ replies: [() -> Void]) {
        (isCommitting, isCommitted) = (false, false)
        group = []
        for reply in replies { reply() }
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
            let result = database.commit(
                waiting.push, to: waiting.store, limits: server.limits, partsMax: server.partsMax)
            return { [self] in
                switch result {
                case .success(let push): publish(push, of: waiting)
                case .failure(let failure): waiting.reply(.failure(failure))
                }
            }
        }
    }

    private func publish(_ push: CommittedPush, of waiting: Waiting) {
        world.note(.answered(waiting.store, push.position))
        if let passed = push.passed { note(passed.revision, of: waiting.store, by: waiting.device) }
        waiting.reply(.success(push.answer))
        guard !push.writes.isEmpty else { return }
        hub.publish(push, of: waiting.store)
        guard server.isShared else { return }
        // In a transaction of its own.
        after(flight) { [self] in server.announce(push.position, of: waiting.store) }
    }

    // MARK: - Connections

    /// A new connection, if the one before is of no use any more, or now and then: as the pool that
    /// ships does, it looks at all hosts where it does not find the primary that it knows.
    private func connect() {
        guard server.isShared else { return }
        let isUsable = database.isRunning && !isReplaced(database)
        guard !isUsable || server.former != nil && world.chance.coin() else { return }
        let found = server.primaries
        guard let first = found.first else { return }
        if first.name.primary != watch.primary {
            for primary in found.compactMap(\.name.primary) { _ = watch.meet(primary) }
        }
        if let newest = found.first(where: { !isReplaced($0) }) { database = newest }
    }

    private func isReplaced(_ database: VirtualDatabase) -> Bool {
        database.name.primary.map { watch.isReplaced($0) } ?? false
    }

    /// Whether the database may be written to, by the stores of the group.
    private var isTrusted: Bool {
        let revisions = Set(group.map(\.store)).map { store in
            HistoryWatch.Revision(
                store: Int64(store.account) << 32 | Int64(store.store),
                revision: database.position(of: store).revision)
        }
        let sight = HistoryWatch.Sight(history: database.name, log: nil, revisions: revisions)
        return watch.note(sight, since: watch.floor) == .trusted
    }

    // MARK: - Commits over a connection

    /// The database has the commit, and answers when it is durable.
    private func commitShared() {
        connect()
        guard database.isRunning, isTrusted else { return tryAgain() }
        let replies = decide()
        isCommitted = true
        let attempt = attempt
        database.replicate { [self] in
            after(flight) { [self] in if attempt == self.attempt { endCommit(replies) } }
        }
        server.compareSoon()
    }

    /// The database has stopped, or another one has taken its place. A group under way was
    /// committed, or was not.
    func loseConnection() {
        guard isCommitting else { return }
        attempt += 1
        let attempt = attempt
        whenAwake { [self] in if attempt == self.attempt { tryAgain() } }
    }

    /// A group that may have been committed is decided once more: a push that was is recognised.
    private func tryAgain() {
        isCommitted = false
        guard world.now < retriesEnd else {
            let group = group
            return endCommit(group.map { waiting in { waiting.reply(.failure(Self.noDatabase)) } })
        }
        attempt += 1
        let attempt = attempt
        after(world.chance.int64(50...500)) { [self] in
            if attempt == self.attempt { sendCommit() }
        }
    }

    // MARK: - Running, stopped and awake

    /// Ends abruptly. The commit under way is on stable storage or is not; nobody is told.
    func crash() {
        guard isRunning else { return }
        isRunning = false
        isReady = false
        if isCommitting, !isCommitted, world.chance.coin() { commitAtTheEnd() }
        (isCommitting, isCommitted) = (false, false)
        attempt += 1
        missed = nil
        let unanswered = group + waiting
        (group, waiting) = ([], [])
        (buckets, passedRevisions) = ([:], [:])
        for push in unanswered { push.reply(.failure(LinkFailure(.unreachable, "reset"))) }
        hub.lose()
    }

    private func commitAtTheEnd() {
        guard server.isShared else {
            _ = commit(group)
            return
        }
        guard database.isRunning else { return }
        _ = commit(group)
        database.replicate {}
        server.compareSoon()
    }

    func start() {
        wake()
        guard !isRunning else { return }
        (isRunning, isReady) = (true, true)
        run += 1
        // It knows nothing.
        watch = HistoryWatch()
        connect()
    }

    /// Stops it, with its connections, as `SIGSTOP` does.
    func stop(for milliseconds: Int64) {
        guard isRunning, missed == nil else { return }
        missed = []
        isSent = world.chance.coin()
        for push in group + waiting { timeOut(push.reply) }
        if milliseconds > VirtualStream.silenceMax { hub.goSilent() }
        let run = run
        world.after(Self.noticeMilliseconds) { [self] in
            if run == self.run, missed != nil { isReady = false }
        }
        world.after(milliseconds) { [self] in if run == self.run { wake() } }
    }

    private func wake() {
        guard let work = missed else { return }
        missed = nil
        isReady = true
        for body in work { whenAwake(body) }
    }

    /// Sets its clock wrong. It notices some time later, and does not get new requests until the
    /// clock is right.
    func setClock(wrongBy error: Int64) {
        clockError = error
        isReady = isRunning
        guard error != 0 else { return }
        let run = run
        world.after(Self.noticeMilliseconds) { [self] in
            if run == self.run, clockError == error { isReady = false }
        }
    }

    /// Runs the closure now, or when it is not stopped any more, or never if it ends before that.
    func whenAwake(_ body: @escaping () -> Void) {
        if missed == nil { body() } else { missed?.append(body) }
    }

    /// Runs the closure later, unless the node ends before that.
    func after(
        _ milliseconds: Int64, evenStopped: Bool = false, _ body: @escaping () -> Void
    ) {
        let run = run
        world.after(milliseconds) { [self] in
            guard isRunning, run == self.run else { return }
            if evenStopped { body() } else { whenAwake(body) }
        }
    }

    private func arrive<Answer>(
        _ reply: @escaping (Result<Answer, LinkFailure>) -> Void, _ body: @escaping () -> Void
    ) {
        if missed != nil { timeOut(reply) }
        whenAwake(body)
    }

    /// Nobody waits forever for a node that is stopped.
    private func timeOut<Answer>(_ reply: @escaping (Result<Answer, LinkFailure>) -> Void) {
        world.after(world.chance.int64(5_000...30_000)) {
            reply(.failure(LinkFailure(.timedOut, "timed out")))
        }
    }

    // MARK: - Chores

    /// Stores which revisions devices have.
    func storePassed() {
        database.pass(passedRevisions)
        passedRevisions = [:]
    }
}
