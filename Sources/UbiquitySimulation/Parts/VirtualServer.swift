// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The server: one node with a database of its own, or several nodes that share one, behind a load
/// balancer.
package final class VirtualServer {
    private unowned let world: any VirtualWorld
    let database: VirtualDatabase
    /// The primary whose standby has become the database, since its machine came back.
    private(set) var former: VirtualDatabase?
    private(set) var nodes: [VirtualNode] = []
    package var limits: StoreLimits
    package var allowance: Allowance
    /// The maximum of streams for an account on one node.
    package var streamsMax = Int.max
    /// See ``PushAdmission/partsMax``.
    package var partsMax = 60
    /// The rule for dropping folded increments of counters.
    package var foldsCompaction = CompactionRule.folded
    package private(set) var sealings: [Int: SealingState] = [:]
    /// The longest time of a flush, and of a message between node and database, in milliseconds.
    let flushMax: Int64
    /// The additional time of each commit, in milliseconds.
    package var slowness: Int64 = 0
    /// Refuses all credentials until then.
    package var deniesUntil: Int64 = 0
    /// Answers that it is busy until then.
    package var isBusyUntil: Int64 = 0
    /// The share of hints that are lost, in thousandths.
    var lostHintsPerMille = 0
    /// The longest time that a hint takes, in milliseconds. Beyond an instant, some come twice.
    var hintMillisecondsMax: Int64 = 5
    /// Whether several nodes share the database.
    let isShared: Bool

    /// Short enough to take effect in runs of some minutes.
    static let compaction = CompactionRule(
        retentionMilliseconds: 20_000, liveMilliseconds: 60_000, tombstonesMax: 3)

    /// - Parameters:
    ///   - nodes: The number of nodes.
    ///   - hasSynchronousStandby: Whether commits of several nodes wait for the database's standby.
    package init(
        world: any VirtualWorld, limits: StoreLimits, allowance: Allowance, flushMax: Int64,
        nodes: Int = 1, hasSynchronousStandby: Bool = false
    ) {
        self.world = world
        self.limits = limits
        self.allowance = allowance
        self.flushMax = flushMax
        isShared = nodes > 1
        database = VirtualDatabase(
            world: world, isSynchronous: nodes > 1 ? hasSynchronousStandby : nil)
        self.nodes = (0..<nodes).map { _ in
            VirtualNode(server: self, world: world, database: database)
        }
    }

    package var stores: [StoreReference: VirtualStore] { database.rows }
    package var isRunning: Bool { database.isRunning && nodes.contains(where: \.isRunning) }

    // MARK: - Clocks

    package var now: Int64 { database.now }

    /// The lead of the database's clock.
    package var clockError: Int64 {
        get { database.clockError }
        set { database.clockError = newValue }
    }

    /// The time that its clock would show if it had never been set back.
    var greatestNow: Int64 { database.greatestNow }

    /// Sets its clock to the time without any set-backs, so that nobody has to wait for it.
    func setClockForward() { database.setClockForward() }

    // MARK: - Requests

    /// The node that the load balancer chooses. It may not have noticed yet that a node is gone.
    package var chosenNode: VirtualNode {
        guard isShared else { return nodes[0] }
        let ready = nodes.filter(\.isReady)
        return world.chance.pick(ready.isEmpty || world.chance.perMille(50) ? nodes : ready)
    }

    /// Sends the changes since the cursor, then each commit as it happens.
    package func open(_ stream: VirtualStream, since cursor: Cursor?, isSaved: Bool) {
        if stream.isTaken { return }
        stream.isTaken = true
        chosenNode.open(stream, since: cursor, isSaved: isSaved)
    }

    package func unsubscribe(_ stream: VirtualStream) {
        for node in nodes { node.hub.unsubscribe(stream) }
    }

    /// Whether the account has reached its maximum of streams on some node.
    package func hasAllStreams(_ account: Int) -> Bool {
        nodes.contains { $0.hub.streamCount(of: account) >= streamsMax }
    }

    // MARK: - Sealing

    func sealing(of account: Int) -> SealingState { sealings[account] ?? SealingState() }

    /// Seals an account, or gives it the next key, and ends its streams.
    /// - Returns: Whether the account has this mark now.
    func seal(_ account: Int, with mark: AccountSealing, proof: Bytes32?) -> Bool {
        var sealing = sealing(of: account)
        let author = SealingState.Author(device: .unassigned, name: "", milliseconds: now)
        do throws(SealingRefusal) {
            guard try sealing.take(mark, proof: proof, by: author) else { return true }
        } catch { return false }
        database.keepMark()
        sealings[account] = sealing
        endStreams { $0.account == account }
        return true
    }

    /// Seals an account with its newest key, and at once all that it has, as a device would do.
    package func sealWithKey(of account: Int) {
        guard let keyring = world.keyring(of: account), let mark = AccountSealing(keyring),
            seal(account, with: mark, proof: keyring.proof(of: sealing(of: account).generation))
        else { return }
        for number in database.unsealed(account, with: keyring.current) {
            let store = StoreReference(account: account, store: number)
            guard let found = try? chosenNode.changes(of: store, since: nil),
                let sealer = keyring.sealer(of: world.identifier(ofStore: number)),
                let sealed = try? sealer.sealWhole(
                    found, by: .unassigned, latest: .max, run: world.chance.number())
            else { continue }
            _ = database.replace(
                store,
                by: WholeStore(
                    cursor: found.cursor, generation: keyring.current, records: sealed.records,
                    proof: keyring.proof(of: keyring.current)),
                limits: limits)
        }
    }

    func endStreams(where isMeant: @escaping (StoreReference) -> Bool) {
        for node in nodes { node.whenAwake { node.hub.end(where: isMeant) } }
    }

    // MARK: - Between nodes

    /// Tells all nodes that a store has reached a position: a hint, which may be lost, late, doubled
    /// or out of order.
    func announce(_ position: Position, of store: StoreReference) {
        for node in nodes where !world.chance.perMille(lostHintsPerMille) {
            let isDoubled = hintMillisecondsMax > 1_000 && world.chance.coin()
            for _ in 0...(isDoubled ? 1 : 0) {
                node.after(world.chance.int64(0...hintMillisecondsMax)) {
                    node.hub.hear(of: position, in: store)
                }
            }
        }
    }

    /// The database may have changed.
    func compareSoon() { for node in nodes { node.hub.compareSoon() } }

    // MARK: - Faults

    /// Ends abruptly, every node of it. The commits under way are on stable storage or are not;
    /// nobody is told.
    package func crash() {
        if isShared { return stopDatabase() }
        database.stop()
        nodes[0].crash()
    }

    /// Starts what does not run.
    package func start() {
        startDatabase()
        for node in nodes { node.start() }
    }

    package func makeBackup() { database.makeBackup() }

    /// Replaces its storage by an older copy, and leaves it stopped. Nodes that share it go on.
    package func restore() {
        crash()
        database.restore()
    }

    package func restore(
        _ backup: [StoreReference: VirtualStore], _ sealings: [Int: SealingState]
    ) {
        crash()
        database.restore(backup)
        self.sealings = sealings
    }

    package func overflow() { for node in nodes { node.hub.overflow() } }

    package func compactTombstones() { compactTombstones(by: Self.compaction) }

    /// Any node may do this at any time.
    package func compactTombstones(by rule: CompactionRule) {
        (isShared ? world.chance.pick(nodes) : nodes[0]).storePassed()
        database.compactTombstones(by: rule)
        database.compactFolded(by: foldsCompaction)
        database.pruneHistories()
        if isShared { database.replicate {} }
    }

    func compactFolded(by rule: CompactionRule) {
        database.compactFolded(by: rule)
        if isShared { database.replicate {} }
    }

    func refuseCommit() {
        (isShared ? world.chance.pick(nodes) : nodes[0]).commits.refusesNext = true
    }
}

/// Faults of nodes and of the database that they share.
extension VirtualServer {
    private var someNode: VirtualNode { world.chance.pick(nodes) }

    /// - Returns: What starts it again.
    func crashNode() -> () -> Void {
        let node = someNode
        node.crash()
        return node.start
    }

    func stopNode(for milliseconds: Int64) { someNode.stop(for: milliseconds) }

    /// Sets the clock of one node wrong.
    /// - Returns: What sets it right.
    func setNodeClock(wrongBy error: Int64) -> () -> Void {
        let node = someNode
        node.setClock(wrongBy: error)
        // Devices may take its time for the server's.
        world.note(.serverClock(error: clockError + error))
        world.note(.serverClock(error: clockError))
        return { node.setClock(wrongBy: 0) }
    }

    /// Another session of the database locks the rows of a store.
    func lockStore(for milliseconds: Int64) {
        let stores = database.rows.keys.sorted()
        guard !stores.isEmpty else { return }
        let store = world.chance.pick(stores)
        database.lockedStores.insert(store)
        world.after(milliseconds) { [self] in database.lockedStores.remove(store) }
    }

    func stopDatabase() {
        endFormer()
        database.stop()
        for node in nodes { node.commits.loseConnection() }
    }

    func startDatabase() {
        database.start()
        compareSoon()
    }

    /// The database is gone, and its standby takes its place when it is started.
    /// - Returns: What brings the old primary back, which takes writes beside the new one if that is
    ///   running.
    func failOver() -> () -> Void {
        stopDatabase()
        let former = database.former()
        database.promoteStandby()
        let run = database.run
        return { [self] in
            guard database.isRunning, database.run == run + 1 else { return }
            former.start()
            self.former = former
        }
    }

    /// The old primary ends, or becomes a standby.
    func endFormer() {
        former?.stop()
        former = nil
    }

    /// The hosts that take writes, in the order in which nodes try them.
    var primaries: [VirtualDatabase] { [former, database].compactMap(\.self).filter(\.isRunning) }
}

extension AccountSealing {
    /// The mark of these keys. Nobody opens its recovery here.
    init?(_ keyring: Keyring) {
        guard let check = keyring.check else { return nil }
        self.init(generation: keyring.current, check: check, recovery: [])
    }
}
