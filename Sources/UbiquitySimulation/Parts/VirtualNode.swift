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
    /// Last-seen information, which is lost if the node ends before it is stored.
    private var passedRevisions: [VirtualDatabase.DeviceStore: Int64] = [:]
    private(set) lazy var hub = VirtualHub(node: self, isShared: server.isShared)
    private(set) lazy var commits = VirtualCommits(node: self, isShared: server.isShared)

    /// The work that arrived while it was stopped; nil while it is not.
    private var missed: [() -> Void]?

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
    var slowness: Int64 { server.slowness }
    var busyUntil: Int64 { server.isBusyUntil }
    var isStopped: Bool { missed != nil }

    // MARK: - Requests

    package func push(
        _ push: Push, to store: StoreReference, by device: DeviceID,
        reply: @escaping (Result<PushAnswer, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                try check(push.generation, for: store)
                try take(
                    VirtualDatabase.Client(account: store.account, device: device),
                    bytes: push.bytes)
            } catch { return reply(.failure(error)) }
            commits.commit(push, to: store, by: device) { [self] outcome in
                if case .success(let push) = outcome { note(push, of: store, by: device) }
                reply(outcome.map(\.answer))
            }
        }
    }

    private func note(_ push: CommittedPush, of store: StoreReference, by device: DeviceID) {
        world.note(.answered(store, push.position))
        if let passed = push.passed { note(passed.revision, of: store, by: device) }
    }

    private func admit() throws(LinkFailure) {
        guard isRunning else { throw LinkFailure(.unreachable, "no server") }
        if world.now < server.deniesUntil { throw LinkFailure(.unauthorized, "denied") }
        if world.now < server.isBusyUntil {
            let rest = server.isBusyUntil - world.now
            throw LinkFailure(.busy(retryAfterMilliseconds: rest), "busy")
        }
    }

    private func check(
        _ generation: UInt32, for store: StoreReference
    ) throws(LinkFailure) {
        if let failure = database.refusal(of: generation, store) { throw failure }
    }

    // MARK: - Sealing

    /// What the server knows of the sealing of an account.
    struct AccountState {
        /// Nil if it is not sealed.
        var mark: AccountSealing?
        /// The stores that are not sealed with its key yet.
        var unsealed: [Int]
    }

    func sealing(
        of account: Int, reply: @escaping (Result<AccountState, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                try needDatabase()
            } catch { return reply(.failure(error)) }
            let mark = server.sealing(of: account).mark
            let unsealed = database.unsealed(account, with: mark?.generation ?? 0)
            reply(.success(AccountState(mark: mark, unsealed: unsealed)))
        }
    }

    /// - Parameters:
    ///   - proof: Of the account's present key.
    ///   - reply: Called with whether the account has this mark now.
    func seal(
        _ account: Int, with mark: AccountSealing, proof: Bytes32?,
        reply: @escaping (Result<Bool, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                try needDatabase()
            } catch { return reply(.failure(error)) }
            reply(.success(server.seal(account, with: mark, proof: proof)))
        }
    }

    /// All that a store has, whatever it is sealed with.
    func whole(
        _ store: StoreReference, generation: UInt32,
        reply: @escaping (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                let own = world.generation(of: store.account)
                guard generation == own else {
                    throw LinkFailure(.sealed(generation: own), "another key")
                }
                reply(.success(try changes(of: store, since: nil)))
            } catch { reply(.failure(error)) }
        }
    }

    func replace(
        _ store: StoreReference, by whole: WholeStore,
        reply: @escaping (Result<Void, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) { try admit() } catch { return reply(.failure(error)) }
            after(flight + slowness) { [self] in
                let isFree = !server.isShared || mayCommit(to: [store])
                guard isFree, database.isRunning, !database.lockedStores.contains(store) else {
                    return reply(.failure(Self.noDatabase))
                }
                if let failure = database.replace(store, by: whole, limits: server.limits) {
                    return reply(.failure(failure))
                }
                let position = database.position(of: store)
                database.replicate { [self] in
                    announce(position, of: store)
                    reply(.success(()))
                }
                server.endStreams { $0 == store }
            }
        }
    }

    private func needDatabase() throws(LinkFailure) {
        connect()
        guard database.isRunning, database === server.database else { throw Self.noDatabase }
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

    /// - Parameter generation: The number of the account's key that the device has; 0 for none.
    package func pull(
        _ store: StoreReference, since cursor: Cursor?, isSaved: Bool, withConfig: Bool,
        by device: DeviceID, generation: UInt32 = 0,
        reply: @escaping (Result<ChangeSet, LinkFailure>) -> Void
    ) {
        arrive(reply) { [self] in
            do throws(LinkFailure) {
                try admit()
                try check(generation, for: store)
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

    static let noDatabase = LinkFailure(
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
                try check(stream.generation, for: stream.store)
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

    /// Writes a push to stable storage.
    func commit(_ push: Push, to store: StoreReference) -> Result<CommittedPush, LinkFailure> {
        database.commit(push, to: store, limits: server.limits, partsMax: server.partsMax)
    }

    /// Tells all nodes what was committed, in a transaction of its own.
    func announce(_ position: Position, of store: StoreReference) {
        after(flight) { [self] in server.announce(position, of: store) }
    }

    func compareAllSoon() { server.compareSoon() }

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

    /// Whether there is a database that may be written to.
    func mayCommit(to stores: Set<StoreReference>) -> Bool {
        connect()
        guard database.isRunning else { return false }
        let revisions = stores.map { store in
            HistoryWatch.Revision(
                store: Int64(store.account) << 32 | Int64(store.store),
                revision: database.position(of: store).revision)
        }
        let sight = HistoryWatch.Sight(history: database.name, log: nil, revisions: revisions)
        return watch.note(sight, since: watch.floor) == .trusted
    }

    // MARK: - Running, stopped and awake

    /// Ends abruptly. The commit under way is on stable storage or is not; nobody is told.
    func crash() {
        guard isRunning else { return }
        isRunning = false
        isReady = false
        missed = nil
        commits.crash()
        (buckets, passedRevisions) = ([:], [:])
        hub.lose()
    }

    func start() {
        wake()
        guard !isRunning else { return }
        (isRunning, isReady) = (true, true)
        run += 1
        // It knows nothing.
        watch = HistoryWatch()
        connect()
        hub.start()
    }

    /// Stops it, with its connections, as `SIGSTOP` does.
    func stop(for milliseconds: Int64) {
        guard isRunning, missed == nil else { return }
        missed = []
        commits.stop()
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
    func timeOut<Answer>(_ reply: @escaping (Result<Answer, LinkFailure>) -> Void) {
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
