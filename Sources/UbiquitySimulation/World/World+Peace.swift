// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension World {
    /// The additional time for each clone, because clones of one device share its allowance.
    private static let spreadingMillisecondsPerClone: Int64 = 5_000

    /// Ends all faults and runs all machines; then everything must come to agree. Every account
    /// gets its turn on each device that has its values.
    func settle() {
        // At times as the last fault of all, with answers under way.
        if scenario.faults.contains(.serverRestore), chance.coin() { server.restore() }
        run.isPeaceful = true
        endFaults()
        // A restored server whose clock was set back accepts no later timestamps than its own clock
        // permits.
        pass(server.greatestNow - server.now + scenario.settlingMilliseconds)
        while violation == nil, visitNextAccounts() {
            finishSealing()
            pass(scenario.settlingMilliseconds)
        }
        noteSettled()
        guard violation == nil else { return }
        probe()
        let clones = Int64(devices.count - scenario.devices)
        pass(scenario.spreadingMilliseconds + clones * Self.spreadingMillisecondsPerClone)
        noteSettled()
    }

    private func endFaults() {
        server.slowness = 0
        server.deniesUntil = 0
        server.isBusyUntil = 0
        server.endFormer()
        server.start()
        if scenario.faults.contains(.serverClockWeeks) {
            server.setClockForward()
            noteClocks()
        }
        for device in devices {
            device.setFull(false)
            device.setUnreadable(false)
            device.isAccountUnreadable = false
            goOn(device)
            device.goOnline()
            device.start()
            noteClocks()
            for store in 0..<scenario.stores
            where !device.processes.contains(where: { $0.store == store }) {
                launch(store: store, on: device)
            }
            if device.account == nil { device.signIn(device.lastAccount ?? 1) }
            // A device of a sealed account tells its person to set its clock.
            if scenario.isSealed { device.clock.error = min(max(device.clock.error, 0), 3_600_000) }
        }
        noteClocks()
        finishSealing()
    }

    /// - Returns: False if every account has had its turn on every device.
    private func visitNextAccounts() -> Bool {
        devices.reduce(false) { $1.visitNextAccount() || $0 }
    }

    private func probe() {
        for process in devices.flatMap(\.processes) where process.engine.isLeading {
            process.app.probe(process)
        }
    }

    private func noteSettled() {
        noteSettled(
            devices.flatMap { device in
                device.processes.map { Settlement.Process($0, on: device) }
            })
    }
}

extension Settlement.Process {
    /// The values that the app sees, or would see if it declared its rule.
    private static func merged(_ process: VirtualProcess) -> [Key: PropertyListValue] {
        var engine = process.engine
        if !process.declaresRule {
            process.world.declareRule(in: &engine)
            while let conflict = engine.takeConflict() {
                engine.decide(conflict, as: conflict.result)
            }
        }
        return engine.values.filter { process.world.mergedKeys[$0.key] != nil }
    }

    fileprivate init(_ process: VirtualProcess, on device: SimulatedDevice) {
        self.init(
            number: process.number, disk: process.disk.name,
            account: device.account, values: process.engine.contents,
            waiting: process.engine.waitingRecords, isConnected: process.isConnected,
            onDisk: process.disk.values,
            merged: Self.merged(process),
            diskFailure: process.driver.status.diskFailure, wakes: process.wakesInPeace,
            setAside: process.engine.setAsideRecords)
    }
}
