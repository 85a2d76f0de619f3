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
    let server: ServerProcess
    let devices: [TortureDevice]
    let listeners: [ServerListener]
    /// Those that can be filled, and what that is called.
    let smallDisks: [Tally.Event: SmallDisk]
    private let numbers = Mutex(0)
    private let peace = Mutex(false)

    init(
        _ plan: TorturePlan, _ stage: Stage, _ chronicle: Chronicle, _ server: ServerProcess,
        _ devices: [TortureDevice], _ listeners: [ServerListener],
        _ smallDisks: [Tally.Event: SmallDisk]
    ) {
        (self.plan, self.stage, self.chronicle) = (plan, stage, chronicle)
        (self.server, self.devices, self.listeners) = (server, devices, listeners)
        self.smallDisks = smallDisks
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

    /// Starts the server again; where its disk is full, as often as it takes.
    func startServer() async throws {
        while true {
            do {
                try await server.start()
                return
            } catch {
                let disk = smallDisks[.serverDisksFull]
                guard let disk, disk.mayHaveBeenFull else { throw error }
                chronicle.count(.failedStarts)
                chronicle.note("\(error)")
                try await Task.sleep(for: .milliseconds(300))
            }
        }
    }
}
