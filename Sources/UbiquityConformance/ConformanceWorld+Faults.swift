// SPDX-License-Identifier: Apache-2.0

import UbiquitySimulation

extension ConformanceWorld {
    func cause(_ fault: Fault, on device: ConformanceDevice) -> Bool {
        switch fault {
        case .partition:
            device.goOffline()
            after(absence()) { device.goOnline() }
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
            guard !chance.coin() else {
                server.makeBackup()
                return false
            }
            server.restore()
            after(absence() % 3_600_000) { [self] in server.start() }
        // These strike single requests, see `strikes`; and there are no others here.
        default: return false
        }
        return true
    }
}
