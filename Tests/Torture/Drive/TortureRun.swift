// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import Synchronization
import TortureLanguage
import UbiquityCore
import UbiquitySimulation

/// Everything of one run, for its drivers.
///
/// Shared state: the numbers given out and whether it is peace, each guarded by a mutex; all drivers
/// use them.
final class TortureRun: Sendable {
    let plan: TorturePlan
    let stage: Stage
    let chronicle: Chronicle
    /// One server, or several nodes of one.
    let nodes: [TortureNode]
    /// Of several nodes; nil if the server has its own.
    let database: DatabasePair?
    /// The way to any of the nodes for everybody who has none of their own.
    let front: Proxy
    let probe: ServiceProbe
    let devices: [TortureDevice]
    /// One for each account.
    let listeners: [ServerListener]
    /// One for each account and node, which only watch.
    let witnesses: [ServerListener]
    /// The disks that can be filled, by the event that this counts as.
    let smallDisks: [Tally.Event: SmallDisk]
    private let numbers = Mutex(0)
    private let peace = Mutex(false)

    init(
        _ plan: TorturePlan, _ stage: Stage, _ chronicle: Chronicle, _ servers: TortureServers,
        _ probe: ServiceProbe, _ devices: [TortureDevice], _ listeners: [ServerListener],
        _ witnesses: [ServerListener], _ smallDisks: [Tally.Event: SmallDisk]
    ) {
        (self.plan, self.stage, self.chronicle) = (plan, stage, chronicle)
        (nodes, database, front) = (servers.nodes, servers.database, servers.front)
        (self.probe, self.devices, self.listeners) = (probe, devices, listeners)
        (self.witnesses, self.smallDisks) = (witnesses, smallDisks)
    }

    var appCount: Int { plan.devices * plan.processes }

    var isPeaceful: Bool { peace.withLock { $0 } }

    func makePeace() { peace.withLock { $0 = true } }

    /// The device that becomes a copy of another one.
    var clone: TortureDevice? { devices.first { $0.original != nil } }

    func newNumber() -> Int { newNumbers(1) }

    /// - Returns: The first of them.
    func newNumbers(_ count: Int) -> Int {
        numbers.withLock { numbers in
            numbers += count
            return numbers - count + 1
        }
    }

    // MARK: - Apps

    func startApp(_ name: String, on device: TortureDevice) throws -> AppProcess {
        try AppProcess(newNumber(), name: name, on: device, stage, chronicle)
    }

    /// One transaction.
    /// - Parameter padding: Nil: the keys are removed.
    func write(_ keys: [String], padding: Int?, by process: AppProcess) {
        let batch = newNumber()
        let first = newNumbers(keys.count)
        process.send(
            .write(TortureWrite(batch: batch, first: first, keys: keys, padding: padding)))
    }

    // MARK: - Disks

    func hasSmallDisk(_ device: TortureDevice) -> Bool {
        smallDisks.values.contains { device.home.hasPrefix($0.folder) }
    }

    /// Whether there was no room on the device's disk, now or a moment ago.
    func mayHaveBeenFull(_ device: TortureDevice) -> Bool {
        smallDisks.values.contains { device.home.hasPrefix($0.folder) && $0.mayHaveBeenFull }
    }

    // MARK: - Servers

    func newCode(isFirst: Bool = false, account: String) async throws -> String {
        let running = nodes.first { $0.server.processID != nil } ?? nodes[0]
        return try await running.server.newCode(isFirst: isFirst, account: account)
    }

    func kill(_ node: TortureNode) async throws {
        try await node.server.kill()
        probe.noteFault(.serverKills)
        chronicle.count(.serverKills)
        chronicle.note("server \(node.number) is killed")
    }

    /// Starts a server again, as often as it takes where its disk is full, or its database is not
    /// there: that comes back.
    func start(_ node: TortureNode) async throws {
        let end = ContinuousClock.now + TorturePlan.startPatience
        while true {
            do {
                try await node.server.start()
                return
            } catch {
                let isFull = smallDisks[.serverDisksFull]?.mayHaveBeenFull ?? false
                guard isFull || database != nil && .now < end else { throw error }
                chronicle.count(.failedStarts)
                chronicle.note("\(error)")
                try await Task.sleep(for: .milliseconds(300))
            }
        }
    }
}
