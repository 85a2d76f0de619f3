// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import ProcessHarness
import TortureLanguage
import UbiquityCore

/// Has one app of a device write and delete, save and sync, be killed and start again.
struct AppDriver {
    let name: String
    let device: TortureDevice
    let run: TortureRun
    private var random: RandomSource

    init(_ name: String, on device: TortureDevice, _ run: TortureRun, seed: UInt64) {
        (self.name, self.device, self.run) = (name, device, run)
        random = RandomSource(seed: seed)
    }

    /// Until peace comes.
    /// - Returns: The process that then runs; nil: its device never came to be.
    /// - Throws: ``Trouble``, and `CancellationError`.
    mutating func work() async throws -> AppProcess? {
        while try await enter() {
            defer { device.door.leave() }
            // One in five does not live to write.
            if !run.isPeaceful, random.chance(20) { try await dieStarting() }
            guard let process = try await start() else { continue }
            try await live(process)
            if run.isPeaceful { return process }
            try await kill(process)
            await random.pause(milliseconds: 500)
        }
        return nil
    }

    /// - Returns: False if it is peace, and there is no device.
    private func enter() async throws -> Bool {
        while !device.door.enter() {
            if run.isPeaceful, !device.door.wasOpen { return false }
            try await Task.sleep(for: .milliseconds(50))
        }
        return true
    }

    // MARK: - Beginnings and ends

    private mutating func dieStarting() async throws {
        let process = try run.startApp(name, on: device)
        await random.pause(milliseconds: 150)
        try await process.kill("is killed while it starts")
        run.chronicle.count(.deviceKills)
    }

    /// - Returns: Nil if there was no room on the disk for a start.
    /// - Throws: ``Trouble`` if there was another reason.
    private func start() async throws -> AppProcess? {
        let process = try run.startApp(name, on: device)
        try await until("the start of \(name)") {
            process.isOpen || !process.isRunning
        }
        if process.isOpen { return process }
        try await process.kill("could not start: \(process.lastWords)")
        guard run.mayHaveBeenFull(device) else {
            throw Trouble("\(name) could not start: \(process.lastWords)")
        }
        run.chronicle.count(.failedStarts)
        try await Task.sleep(for: .milliseconds(300))
        return nil
    }

    /// In the middle of something, most often.
    private mutating func kill(_ process: AppProcess) async throws {
        for _ in 0..<Int.random(in: 0...12, using: &random) { act(process) }
        process.send(.save)
        await random.pause(milliseconds: 40)
        try mustRun(process)
        // One in three closes its store as it should: the last to do so empties the log.
        if random.chance(33) {
            try await process.end()
            run.chronicle.count(.appEnds)
        } else {
            try await process.kill("is killed")
            run.chronicle.count(.deviceKills)
        }
    }

    private func mustRun(_ process: AppProcess) throws {
        if !process.isRunning {
            throw Trouble("\(name) ended by itself: \(process.lastWords)")
        }
    }

    // MARK: - A life

    private mutating func live(_ process: AppProcess) async throws {
        let life = random.interval(mean: run.plan.appKillInterval * Double(run.appCount))
        let end = ContinuousClock.now.advanced(by: life)
        // Seven of ten know of the policies.
        if random.chance(70) { process.send(.declare) }
        while !run.isPeaceful, device.door.isOpen, ContinuousClock.now < end {
            try Task.checkCancellation()
            try mustRun(process)
            act(process)
            if random.chance(2) { await stop(process) }
            try await Task.sleep(for: random.interval(mean: run.plan.workInterval))
        }
    }

    /// In the middle of anything: it may lead, and have the disk locked. Not for as long as the
    /// others wait for that, nor for as long as times may be wrong.
    private mutating func stop(_ process: AppProcess) async {
        run.chronicle.count(.stops)
        process.stop(true)
        act(process)
        await random.pause(milliseconds: TorturePlan.stopMax)
        process.stop(false)
    }

    private mutating func act(_ process: AppProcess) {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<20: write(sharedKey(), process)
        case 20..<40: process.send(.merge(number: run.newNumber(), seed: random.next()))
        case 40..<48: write([TorturePlan.ownKey(of: name)], process)
        case 48..<57: write(sharedKey(), process, removes: true)
        case 57..<70: write(group(), process)
        case 70..<74: write(group(), process, removes: true)
        case 74..<88: process.send(.save)
        case 88..<92: process.send(.roundTrip(run.newNumber()))
        case 92..<94: process.send(.show)
        case 94..<97:
            process.send(.reopen)
            if random.chance(70) { process.send(.declare) }
        // A burst: only its last value need ever be sent.
        default: for _ in 0..<8 { write(sharedKey(), process) }
        }
    }

    private mutating func sharedKey() -> [String] {
        [run.plan.sharedKeys.randomElement(using: &random) ?? ""]
    }

    private mutating func group() -> [String] {
        run.plan.groups.randomElement(using: &random) ?? []
    }

    private mutating func write(_ keys: [String], _ process: AppProcess, removes: Bool = false) {
        // Some are so large that they need room on the disk.
        let length = random.chance(4) ? 8_000 : Int.random(in: 0...40, using: &random)
        run.write(keys, padding: removes ? nil : length, by: process)
    }
}
