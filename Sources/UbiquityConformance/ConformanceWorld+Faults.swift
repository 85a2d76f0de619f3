// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

extension ConformanceWorld {
    func planFault() {
        let faults = Fault.allCases.filter { scenario.faults.contains($0) }
        after(chance.interval(mean: scenario.faultInterval)) { [self] in
            guard !isPeaceful else { return }
            cause(chance.pick(faults))
            planFault()
        }
    }

    /// A duration of absence in milliseconds: from moments to hours.
    private func absence() -> Int64 {
        chance.interval(mean: chance.pick([100, 5_000, 120_000, 4_000_000]))
    }

    private func cause(_ fault: Fault) {
        let device = chance.pick(devices)
        switch fault {
        case .cut: for stream in streams(of: device) { stream.cut() }
        case .halfOpen: for stream in streams(of: device) { stream.goSilent() }
        case .partition:
            device.goOffline()
            after(absence()) { device.goOnline() }
        case .clockJump: device.clock.error += chance.int64(-7_200_000...7_200_000)
        case .drift: device.clock.drift = chance.int64(-200...200)
        case .processKill:
            for process in device.processes { device.kill(process) }
            after(absence()) { [self] in if !isPeaceful { launch(on: device) } }
        case .machineCrash:
            device.crash()
            after(absence()) { [self] in
                guard !isPeaceful else { return }
                device.start()
                noteClocks()
                launch(on: device)
            }
        case .diskFull: for process in device.processes { process.failsNextSave = true }
        case .serverCrash:
            server.crash()
            after(absence() % 3_600_000) { [self] in server.start() }
        case .serverRestore:
            guard !chance.coin() else { return server.makeBackup() }
            server.restore()
            after(absence() % 3_600_000) { [self] in server.start() }
        case .compactTombstones: server.compactTombstones()
        case .serverSlow:
            server.slowness = chance.int64(0...2_000)
            after(absence()) { [self] in server.slowness = 0 }
        case .serverBusy: server.isBusyUntil = now + absence() % 60_000
        case .overflow: server.overflow()
        case .limitsChange:
            server.limits.keysMax = chance.int(4...20)
            server.limits.storeBytesMax = chance.int(200...2_000)
        case .unauthorized: server.deniesUntil = now + absence() % 600_000
        // These strike single requests, see `strikes`; and there are no others here.
        default: return
        }
        journal.count(fault)
        noteClocks()
    }

    private func streams(of device: ConformanceDevice) -> [VirtualStream] {
        device.processes.flatMap(\.openStreams)
    }
}
