// SPDX-License-Identifier: Apache-2.0

import UbiquitySimulation

extension ConformanceWorld {
    func cause(_ fault: Fault, on device: ConformanceDevice) -> Bool {
        switch fault {
        case .partition:
            device.goOffline()
            after(absence()) { device.goOnline() }
        case .processKill:
            let process = someProcess(of: device)
            if let process { device.kill(process) }
            after(absence()) { [self] in
                if !isPeaceful { launch(process?.place ?? 0, on: device) }
            }
        case .processStop:
            guard let process = someProcess(of: device) else { return false }
            // In half of the cases in the middle of a save.
            if chance.coin() {
                process.stopsInSave = absence()
            } else {
                process.stop(for: absence())
            }
        case .diskUnreadable:
            guard let process = someProcess(of: device) else { return false }
            process.isDiskClosed = true
            after(absence()) { process.isDiskClosed = false }
        case .saveUncertain: someProcess(of: device)?.diskFailure = (.late, now)
        case .machineCrash:
            device.crash()
            after(absence()) { [self] in
                guard !isPeaceful else { return }
                device.start()
                noteClocks()
                launch(on: device)
            }
        case .diskFull:
            let failure = chance.pick(DiskFailure.allCases.filter { $0 != .late })
            // In half of the cases, it is over with the next save.
            let until = now + (failure.isRefusal && chance.coin() ? absence() : 0)
            for process in device.processes {
                process.diskFailure = (failure, until)
                guard chance.coin() else { continue }
                after(chance.int64(0...2_000)) { process.whenRunning { process.synchronize() } }
            }
        case .serverCrash:
            // It says goodbye, or it does not.
            if hasProcesses, chance.coin() {
                for process in devices.flatMap(\.processes) {
                    for stream in process.openStreams { stream.breakOff(nil) }
                }
            }
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

    private func someProcess(of device: ConformanceDevice) -> ClientProcess? {
        device.processes.count < 2 ? device.processes.first : chance.pick(device.processes)
    }
}
