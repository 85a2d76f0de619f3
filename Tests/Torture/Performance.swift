// SPDX-License-Identifier: Apache-2.0

import Foundation
import ProcessHarness
import UbiquitySimulation

/// One torture from beginning to end.
struct Performance: Sendable {
    private let plan: TorturePlan
    private let stage: Stage
    private let run: TortureRun

    /// Sets everything up: server, accounts, devices that are signed in and have synced once.
    /// - Throws: ``Trouble`` and others.
    init(_ plan: TorturePlan, _ stage: Stage) async throws {
        self.plan = plan
        self.stage = stage
        run = try await Setting(plan, stage).build()
    }

    /// - Returns: What is wrong; nil: all promises were kept.
    func complaint() async -> String? {
        let watching =
            (run.listeners + run.witnesses).map { listener in Task { await listener.run() } }
            + [Task { [probe = run.probe] in await probe.run() }]
        defer { for task in watching { task.cancel() } }
        do {
            try await FullDiskScene(run: run).play()
            let processes = try await storm()
            Torture.say("peace: all must agree")
            if run.chronicle.complaint == nil {
                try await Peace(run: run, processes: processes).settle()
            }
        } catch { run.chronicle.complain("\(error)") }
        return run.chronicle.complaint
    }

    /// Ends with peace, when its time is over or something is wrong.
    /// - Returns: The apps that then run.
    private func storm() async throws -> [AppProcess] {
        try await withThrowingTaskGroup(of: AppProcess?.self) { group in
            for task in tasks {
                group.addTask {
                    do { return try await task() } catch {
                        // The others must not go on until their time is over.
                        run.makePeace()
                        throw error
                    }
                }
            }
            return try await group.reduce(into: []) { if let app = $1 { $0.append(app) } }
        }
    }

    private typealias Act = @Sendable () async throws -> AppProcess?

    private var tasks: [Act] {
        [
            watching, changingAccounts, breaking(0) { try await $0.breakServers() },
            breaking(1) { await $0.fillDisks() }, breaking(3) { try await $0.copyDevices() },
            breaking(4) { try await $0.breakDatabase() },
        ]
            + run.devices.filter { $0.original == nil }.map(breakingNetwork)
            + (plan.isSealed ? run.listeners.map(sealing) : [])
            + run.devices.flatMap { device in
                (0..<plan.processes).map { working($0, on: device) }
            }
    }

    private var watching: Act {
        {
            await watch()
            return nil
        }
    }

    private func breaking(
        _ seedOffset: UInt64, _ body: @escaping @Sendable (inout FaultDriver) async throws -> Void
    ) -> Act {
        { [run, plan] in
            var faults = FaultDriver(run, seed: plan.seed &+ seedOffset)
            try await body(&faults)
            return nil
        }
    }

    private func breakingNetwork(of device: TortureDevice) -> Act {
        breaking(UInt64(1_000 + device.number)) { try await $0.breakNetwork(of: device) }
    }

    private var changingAccounts: Act {
        { [run, plan] in
            var accounts = AccountDriver(run, seed: plan.seed &+ 2)
            try await accounts.work()
            return nil
        }
    }

    private func sealing(_ listener: ServerListener) -> Act {
        { [run, plan] in
            var people = SealingDriver(
                run, listener, seed: plan.seed &+ UInt64(3_000 + listener.store.account))
            try await people.work()
            return nil
        }
    }

    private func working(_ number: Int, on device: TortureDevice) -> Act {
        { [run, plan] in
            let place = device.number * plan.processes + number
            var driver = AppDriver(
                "d\(device.number).p\(number)", on: device, run,
                seed: plan.seed &+ UInt64(2_000 + place))
            return try await driver.work()
        }
    }

    /// Says how it goes, and makes peace in time.
    private func watch() async {
        let clock = ContinuousClock()
        let (start, end) = (clock.now, clock.now.advanced(by: .seconds(plan.seconds)))
        var nextReport = start.advanced(by: .seconds(10))
        while clock.now < end, !run.isPeaceful, run.chronicle.complaint == nil {
            try? await Task.sleep(for: .milliseconds(50))
            if clock.now > nextReport {
                let seconds = Int((clock.now - start) / .seconds(1))
                Torture.say("\(seconds) s: \(run.chronicle.tally.brief)")
                nextReport = nextReport.advanced(by: .seconds(10))
            }
        }
        run.chronicle.note("peace")
        run.makePeace()
    }

    // MARK: - The end

    func report() {
        for line in run.chronicle.tally.lines { Torture.say(line) }
        for (cause, time) in run.probe.longest.prefix(5) {
            let seconds = String(format: "%9.1f", time / .seconds(1))
            Torture.say(
                "\(seconds) seconds at most without an acknowledged push"
                    + (cause.map { ", after \($0.rawValue)" } ?? ", after nothing of the above"))
        }
    }
}
