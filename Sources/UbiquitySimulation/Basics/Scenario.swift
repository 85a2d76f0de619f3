// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The setup of a run, drawn from its seed: people, limits and faults.
///
/// A run with all faults at once hardly ever makes progress, and finds less than one with a few
/// frequent faults. So each fault is in about half of the runs.
package struct Scenario: Sendable {
    package var accounts = 1
    package var devices = 2
    package var stores = 1
    /// The maximum of processes on one device.
    package var processes = 1
    package var keys = 6
    /// Keys that are always written together, so that a torn transaction is detected.
    package var groups = 1
    package var groupSize = 3
    /// Adds one key with each of these policies.
    package var policies: [MergePolicy] = []
    package var firstSync = FirstSyncPolicy.serverWins
    package var limits = StoreLimits()
    package var allowance = Allowance(burst: 20, perSecond: 5)
    /// The average time between two actions of a process, in milliseconds.
    package var workInterval: Int64 = 2_000
    /// The average time between two faults, in milliseconds.
    package var faultInterval: Int64 = 10_000
    /// The maximum latency of one direction, in milliseconds.
    package var delayMax: Int64 = 200
    /// The same from a device to the server; nil for the same as back.
    package var delayThereMax: Int64?
    /// The lines of the devices, in rotation.
    package var qualities: [LineQuality] = []
    /// The maximum of streams for an account.
    package var streamsMax = Int.max
    /// The number of a counter's parts that the server lists before it folds some.
    package var partsMax = 60
    /// The number of folded increments that the server keeps; nil for the default, which is hardly
    /// ever reached.
    package var foldedMax: Int?
    /// The limits of the stores' histories.
    package var history = HistoryLimits()
    /// The number of plain keys that the history must not contain.
    package var unkept = 0
    /// The server's timeout for a request, in milliseconds.
    package var requestMillisecondsMax: Int64 = 120_000
    /// The maximum time of a disk flush, in milliseconds.
    package var flushMax: Int64 = 20
    /// The maximum error of a device's wall clock, in hours.
    package var skewHoursMax = 0
    package var faults: Set<Fault> = []
    /// Whether all accounts are sealed, from their first day or later. A device has its person's keys a
    /// while after the sign-in.
    package var isSealed = false
    /// Whether accounts are sealed in the middle of the run.
    package var sealsLater = false
    /// The number of keys that a sealed account gets in the run, one after the other.
    package var generations: UInt32 = 1
    /// Whether the server keeps no rule towards devices of sealed accounts, see ``HostileServer``.
    package var isHostile = false
    /// The number of nodes that share the server's database.
    package var nodes = 1
    /// Whether their commits wait for the database's standby.
    package var hasSynchronousStandby = false

    /// The fastest and simplest scenario, for tests of the simulator itself.
    package init() {}

    /// - Parameters:
    ///   - merging: The source for the policies. It is separate so that their presence changes
    ///     nothing else.
    ///   - lines: The source for the qualities of lines, separate likewise.
    ///   - folding: The source for the folding of counters and the histories, separate likewise.
    ///   - nodes: The source for several nodes and their faults, separate likewise; nil for one
    ///     node.
    ///   - sealing: The source for the sealing of accounts, separate likewise; nil if they are not
    ///     sealed.
    init(
        _ chance: Chance, merging: Chance, lines: Chance, folding: Chance, nodes: Chance?,
        sealing: Chance? = nil
    ) {
        if merging.perMille(400) {
            policies = MergePolicy.allCases.filter { _ in merging.coin() }
        }
        partsMax = folding.pick([60, 0, 1, 2, 4, 8])
        foldedMax = folding.pick([nil, nil, nil, 4, 12])
        history.milliseconds = folding.pick([30 * 86_400_000, 3_600_000, 60_000])
        history.versionsMax = folding.pick([50, 6, 2])
        history.bytesMax = folding.pick([4 << 20, 4 << 20, 8_000])
        unkept = folding.pick([0, 0, 1, 2])
        accounts = chance.pick([1, 1, 2, 3])
        devices = chance.pick([1, 2, 2, 3, 3, 4, 5, 8])
        stores = chance.pick([1, 1, 1, 2])
        processes = chance.pick([1, 1, 2, 3])
        keys = chance.pick([1, 3, 6, 12])
        groups = chance.pick([0, 1, 1, 2])
        groupSize = chance.pick([2, 3, 5])
        firstSync = chance.pick([.serverWins, .timestamps])
        limits.storeBytesMax = chance.pick([300, 1_000, 4_000])
        limits.keysMax = chance.pick([6, 12, 1_024])
        limits.valueBytesMax = chance.pick([100, 1_000])
        limits.key = .utf8Bytes(16)
        // So small that many pushes must be split, and some transactions cannot be made.
        limits.pushBytesMax = chance.pick([2_000, 8 << 20])
        allowance = Allowance(
            burst: chance.pick([2, 10, 100]), perSecond: chance.pick([0.5, 5, 50]))
        workInterval = chance.pick([20, 300, 3_000, 60_000])
        faultInterval = chance.pick([500, 5_000, 60_000, 3_600_000])
        delayMax = chance.pick([2, 100, 3_000])
        flushMax = chance.pick([1, 20, 500])
        skewHoursMax = chance.pick([0, 1, 30])
        // One run in ten has no faults: its failures have other causes.
        if chance.perMille(900) {
            faults = Set(Fault.ofAll.filter { _ in chance.coin() })
            // From the other source, so that runs without these faults do not change.
            faults.formUnion(Fault.rare.filter { _ in merging.perMille(250) })
        }
        // A run of an app that is resumed twice uses its names twice: see RELIABILITY.md.
        if faults.contains(.snapshot) { policies.removeAll { !$0.survivesSnapshots } }
        if lines.perMille(300) { drawLines(lines) }
        if let nodes { drawNodes(nodes) }
        if let sealing { drawSealing(sealing) }
    }

    private mutating func drawSealing(_ chance: Chance) {
        isSealed = true
        sealsLater = chance.coin()
        generations = chance.pick([1, 1, 2, 3])
        // A sealed account takes nothing from a server whose clock is a day ahead of the device's.
        skewHoursMax = min(skewHoursMax, 1)
        faults.remove(.serverClockWeeks)
        // All parts have names of their run, see above.
        if faults.contains(.snapshot) { policies = [] }
        // A server that is hostile need not be faulty too, nor restored.
        isHostile = !sealsLater && generations == 1 && chance.coin()
        if isHostile {
            (policies, skewHoursMax) = ([], 0)
            faults.formIntersection([
                .requestLost, .answerLost, .duplicate, .slowAnswer, .cut, .halfOpen, .partition,
                .processKill, .processStop, .machineCrash, .accountUnreadable,
            ])
        }
    }

    private mutating func drawNodes(_ chance: Chance) {
        nodes = chance.int(2...4)
        hasSynchronousStandby = chance.coin()
        if !faults.isEmpty { faults.formUnion(Fault.ofNodes.filter { _ in chance.coin() }) }
    }

    private mutating func drawLines(_ chance: Chance) {
        if chance.coin() { delayThereMax = chance.pick([0, 20, 2_000]) }
        if chance.perMille(300) { streamsMax = chance.int(1...3) }
        let isSlow = chance.perMille(400)
        qualities = (0..<3).map { _ in
            LineQuality(
                isBuffering: chance.perMille(isSlow ? 600 : 300),
                bytesPerSecond: isSlow && chance.coin() ? chance.pick([35, 35, 60, 400]) : nil)
        }
        guard slowest != nil else { return }
        // A transaction that cannot be split must get through.
        requestMillisecondsMax = 25_000
        (groups, policies, limits.valueBytesMax) = (0, [], 100)
        // And a push must take long.
        keys = 12
    }

    package func delayMax(_ direction: Direction) -> Int64 {
        direction == .there ? delayThereMax ?? delayMax : delayMax
    }

    /// Whether a device may have to manage without a stream.
    package var polls: Bool { streamsMax < .max || qualities.contains(where: \.isBuffering) }

    /// The slowest line in bytes per second; nil if none is slow.
    var slowest: Int? { qualities.compactMap(\.bytesPerSecond).min() }

    /// The time to transfer a whole store, in milliseconds.
    private var transferMax: Int64 {
        let bytes = limits.storeBytesMax + 70 * min(limits.keysMax, keys + groups * groupSize) + 200
        return slowest.map { Int64(bytes) * 1_000 / Int64($0) } ?? 0
    }

    /// The furthest that the times of two writes may be out of order even if no clock is set, in
    /// milliseconds. A device takes the middle between sending and receiving for the server's time,
    /// which is wrong by half of the difference between the two latencies.
    package var timeTolerance: Int64 {
        let late: Int64 = faults.contains(.slowAnswer) ? 20_000 : 0
        // A commit waits for the one before.
        let slow: Int64 = faults.contains(.serverSlow) ? 4_000 : 0
        // If a request arrives twice, the second answer may be the one that arrives in time.
        let again: Int64 =
            !faults.contains(.duplicate) ? 0 : faults.contains(.answerLost) ? 30_000 : late
        let there = delayMax(.there) + transferMax + 2 * flushMax + slow + again
        let back = delayMax(.back) + transferMax + late + lateNode
        return (there + back) / 2 + 100
    }

    /// The longest time for which a node holds back an answer: until its group is durable, it has a
    /// connection to the database, or is not stopped any more; in milliseconds.
    private var lateNode: Int64 {
        guard nodes > 1 else { return 0 }
        // The patience of a group begins anew with the first doubt, and each store has its own.
        return 12_000 + 2 * flushMax + (faults.contains(.nodeStop) ? 50_000 : 0)
    }

    /// Whether a write that was once on the server keeps its stamp.
    ///
    /// A write that the server finds in its future gets a new stamp, because nobody has accepted
    /// it. If the server's clock is set back, somebody may have: the server itself, before it was
    /// restored from an older copy.
    package var keepsStamps: Bool {
        !faults.contains(.serverRestore)
            || faults.isDisjoint(with: [.serverClockJump, .serverClockWeeks])
    }

    /// The keys that a process excludes from histories. Some know nothing of that, as the command
    /// line does not.
    func unkeptKeys(of process: Int) -> Set<Key> {
        process % 3 == 0 ? [] : Set(plainKeys.prefix(unkept))
    }

    package var plainKeys: [Key] { (0..<keys).map { Self.key("k\($0)") } }

    package var groupedKeys: [[Key]] {
        (0..<groups).map { group in (0..<groupSize).map { Self.key("g\(group).\($0)") } }
    }

    package var mergedKeys: [Key: MergePolicy] {
        Dictionary(
            uniqueKeysWithValues: policies.map { (Self.key("p.\($0.rawValue)"), $0) })
    }

    private static func key(_ name: String) -> Key {
        guard let key = try? Key(name) else { preconditionFailure("A name of a key is empty.") }
        return key
    }
}

extension Scenario: CustomStringConvertible {
    package var description: String {
        """
        \(accounts) accounts, \(devices) devices with \(processes) processes, \(stores) stores, \
        \(keys) keys and \(groups) groups of \(groupSize), \
        policies \(policies.map { "\($0)" }.joined(separator: " ")), \(partsMax) parts of a counter, \
        \(foldedMax.map { "\($0)" } ?? "all") remembered that are folded, histories of \
        \(history.versionsMax) versions, \(history.milliseconds) ms and \(history.bytesMax) bytes, not of \
        \(unkept) keys, first sync \(firstSync.rawValue), \
        at most \(limits.keysMax) keys and \(limits.storeBytesMax) bytes, \
        \(allowance.burst) pushes at once and \(allowance.perSecond) a second, \
        work every \(workInterval) ms, faults every \(faultInterval) ms, \
        delays up to \(delayMax) ms, flushes up to \(flushMax) ms, clocks up to \(skewHoursMax) h wrong; \
        delays there up to \(delayThereMax.map { "\($0)" } ?? "the same"), \
        streams \(streamsMax == .max ? "without limit" : "\(streamsMax)"), \
        \(isSealed ? "sealed\(sealsLater ? " later" : "") with \(generations) keys, " : "")\(nodes) nodes\(hasSynchronousStandby ? " with a synchronous standby" : ""), \
        lines \(qualities.map { "\($0.isBuffering ? "buffering " : "")\($0.bytesPerSecond ?? 0)" }), \
        faults of \(faults.map(\.rawValue).sorted().joined(separator: ", "))
        """
    }
}

/// A deliberate fault.
package enum Fault: String, CaseIterable, Sendable {
    static let rare: [Fault] = [.commitRefused, .serverClockWeeks, .flood, .streamMoved]
    /// Faults that only several nodes have.
    static let ofNodes: [Fault] = [
        .nodeStop, .nodeClock, .hintLost, .hintLate, .databaseRestart, .failOver, .storeLocked,
    ]
    /// The faults of all servers, except for the rare ones.
    static let ofAll = allCases.filter { !(rare + ofNodes).contains($0) }
    /// The number of requests in a thousand that suffer from a fault of the run.
    static let oftenPerMille = 60

    // The network
    case requestLost, answerLost, duplicate, slowAnswer, cut, halfOpen, partition, streamMoved
    // Clocks
    case clockJump, drift, serverClockJump
    // Devices
    case processKill, processStop, machineCrash, diskFull, diskUnreadable, saveUncertain
    case diskRestore, clone, snapshot, accountUnreadable
    // The server
    case serverCrash, serverRestore, compactTombstones, serverSlow, serverBusy, overflow
    case limitsChange, unauthorized, commitRefused, serverClockWeeks, flood
    // Several nodes
    case nodeStop, nodeClock, hintLost, hintLate, databaseRestart, failOver, storeLocked
    // People
    case signOut, accountSwitch, wipe
}

/// From a device to the server, or back.
package enum Direction: Sendable { case there, back }

/// The permanent qualities of a line.
package struct LineQuality: Hashable, Sendable {
    /// A proxy holds back an answer's data until it has ended, so a stream brings nothing.
    package var isBuffering = false
    /// Nil means unlimited.
    package var bytesPerSecond: Int?

    package init(isBuffering: Bool = false, bytesPerSecond: Int? = nil) {
        self.isBuffering = isBuffering
        self.bytesPerSecond = bytesPerSecond
    }

    /// The time to transfer this many bytes.
    func milliseconds(for bytes: Int) -> Int64 {
        bytesPerSecond.map { Int64(bytes) * 1_000 / Int64($0) } ?? 0
    }
}
