// SPDX-License-Identifier: Apache-2.0

import ProcessHarness
import UbiquityCore

/// Breaks the network, the server and the disks, until peace comes.
struct FaultDriver {
    let run: TortureRun
    var random: RandomSource

    init(_ run: TortureRun, seed: UInt64) {
        self.run = run
        random = RandomSource(seed: seed)
    }

    // MARK: - The server

    mutating func breakServers() async throws {
        if run.database == nil { try await killServer() } else { try await breakNodes() }
    }

    private mutating func killServer() async throws {
        while await waits(run.plan.serverKillInterval) {
            try run.nodes[0].server.mustRun()
            try await run.kill(run.nodes[0])
            await random.pause(milliseconds: 2_000)
            try await run.start(run.nodes[0])
        }
    }

    // MARK: - The network

    mutating func breakNetwork(of device: TortureDevice) async throws {
        while await waits(run.plan.networkFaultInterval) { try await breakWay(of: device) }
    }

    private mutating func breakWay(of device: TortureDevice) async throws {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<35:
            note(.cuts, device)
            await device.proxy.cut(all: random.chance(50))
        case 35..<52:
            note(.halfCloses, device)
            await device.proxy.halfClose(towards: random.chance(50) ? .device : .server)
        case 52..<68:
            note(.outages, device)
            await device.proxy.close()
            await random.pause(milliseconds: 4_000)
            try await device.proxy.open()
        case 68..<73 where !run.plan.isQuick:
            note(.silences, device)
            await device.proxy.silence(newOnesToo: random.chance(50))
            await random.pause(milliseconds: 3_000)
            await device.proxy.endSilence()
        default:
            note(.slowdowns, device)
            await device.proxy.slow(to: .random(in: 5...TorturePlan.delayMax, using: &random))
            await random.pause(milliseconds: 4_000)
            await device.proxy.slow(to: 0)
        }
    }

    private func note(_ fault: Tally.Event, _ device: TortureDevice) {
        run.chronicle.count(fault)
        run.chronicle.note("\(fault.rawValue): device \(device.number)")
    }

    // MARK: - The disks

    mutating func fillDisks() async {
        while !run.smallDisks.isEmpty, await waits(TorturePlan.fullDiskInterval) {
            guard let (event, disk) = run.smallDisks.randomElement(using: &random) else { return }
            run.chronicle.count(event)
            run.chronicle.note("\(event.rawValue): \(disk.folder)")
            disk.fill()
            await random.pause(milliseconds: 4_000)
            disk.makeRoom()
            run.chronicle.note("there is room again: \(disk.folder)")
        }
    }

    /// - Returns: False if it is peace.
    mutating func waits(_ mean: Double) async -> Bool {
        let end = ContinuousClock.now.advanced(by: random.interval(mean: mean))
        while ContinuousClock.now < end {
            if run.isPeaceful || Task.isCancelled { return false }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return !run.isPeaceful && !Task.isCancelled
    }
}
