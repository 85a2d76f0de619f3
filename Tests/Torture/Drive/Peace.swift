// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import ProcessHarness
import TortureLanguage
import UbiquityCore
import UbiquitySimulation

/// After the faults: everything must come to agree, within a bounded time.
struct Peace {
    let run: TortureRun
    let processes: [AppProcess]

    /// Waits until all agree, has one more change spread, and lets the checkers judge.
    func settle() async throws {
        // Who knows nothing of a key's rule does not see by it.
        for process in processes { process.send(.declare) }
        try await agree(within: TorturePlan.settlingSeconds)
        guard run.chronicle.complaint == nil else { return }
        for (number, process) in processes.enumerated() {
            run.write(
                [run.plan.sharedKeys[number % run.plan.sharedKeys.count]], padding: 0, by: process)
        }
        try await agree(within: TorturePlan.spreadingSeconds)
    }

    /// Waits for agreement, at most for this long. The checkers judge the outcome.
    private func agree(within seconds: Double) async throws {
        let deadline = ContinuousClock.now.advanced(by: .seconds(seconds))
        var settlement = try await look()
        var missing = await missing()
        while missing != nil || !isAgreed(settlement), ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(500))
            settlement = try await look()
            missing = await self.missing()
        }
        if let missing { run.chronicle.complain(missing) }
        try noteRefused()
        // What apps were told may still be on its way to them.
        try await Task.sleep(for: .milliseconds(1_000))
        run.chronicle.note(.settled(settlement))
    }

    /// A store that is sealed forgets its deletions. Of copies of a device, which share its name, the
    /// server may then take a write of one for a repeat of what another had sent, and refuse it.
    private func noteRefused() throws {
        guard run.plan.isSealed else { return }
        for device in run.devices where device.account == run.clone?.account && device.door.wasOpen
        {
            run.chronicle.note(.withdrawn(disk: device.disk, try device.readRefused()))
        }
    }

    /// - Returns: A sentence about a listener that was not told everything, or about the probe; nil:
    ///   nothing is missing.
    private func missing() async -> String? {
        for witness in run.witnesses where await !witness.hasAll() {
            return "\(witness.name) was not told all that \(witness.store) has"
        }
        return await run.probe.missing()
    }

    private func isAgreed(_ settlement: Settlement) -> Bool {
        ConvergenceChecker().check(.settled(settlement), History()) == nil
    }

    private func look() async throws -> Settlement {
        let views = try await views()
        var server: [StoreReference: [Key: Record]] = [:]
        var readable: [StoreReference: Set<Key>] = [:]
        for listener in run.listeners {
            (server[listener.store], readable[listener.store]) = try await listener.pull()
        }
        return Settlement(
            server: server,
            folded: try FoldedCounts.read(run),
            processes: try zip(processes, views).map { process, view in
                Settlement.Process(
                    number: process.number, disk: process.device.disk,
                    account: process.device.account,
                    values: view.values,
                    waiting: Set(view.pendingKeys.compactMap { try? Key($0) }),
                    isConnected: view.connection == "connected",
                    onDisk: try process.device.readDisk(), merged: view.merged)
            }, readable: run.plan.isSealed ? readable : [:])
    }

    /// Asks all how everything stands.
    private func views() async throws -> [TortureView] {
        let seen = processes.map(\.viewsSeen)
        for process in processes { process.send(.show) }
        try await until("an answer of all apps") {
            zip(processes, seen).allSatisfy { $0.viewsSeen > $1 || !$0.isRunning }
        }
        return try processes.map { process in
            guard process.isRunning, let view = process.view else {
                throw Trouble("\(process.name) ended by itself: \(process.lastWords)")
            }
            return view
        }
    }
}
