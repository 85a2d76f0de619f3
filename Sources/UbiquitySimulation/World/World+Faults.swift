// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension World {
    func cause(_ fault: Fault, on device: SimulatedDevice) -> Bool {
        switch fault {
        // These are the same in every world, see `ScenarioWorld`.
        case .cut, .halfOpen, .clockJump, .drift, .compactTombstones, .serverSlow, .serverBusy,
            .overflow, .limitsChange, .unauthorized:
            return false
        // These strike single requests, see the network.
        case .requestLost, .answerLost, .duplicate, .slowAnswer: return false
        // And these strike single hints, see the server.
        case .hintLost, .hintLate: return false
        case .partition: partition(device)
        case .streamMoved: for process in device.processes { process.leaveConnections()() }
        case .serverClockJump: server.clockError += chance.int64(-600_000...600_000)
        case .processKill: killProcess(of: device)
        case .machineCrash: crash(device)
        case .diskFull: fill(device)
        case .diskRestore: restore(device)
        case .diskUnreadable: makeUnreadable(device)
        case .saveUncertain:
            guard let process = device.processes.randomOne(chance) else { return false }
            process.losesSaveAnswer = true
        case .accountUnreadable:
            device.isAccountUnreadable = true
            after(absence()) { device.isAccountUnreadable = false }
        case .processStop: stopProcess(of: device)
        case .snapshot: if devices.count < 10 { resumeSnapshot(of: device) } else { return false }
        case .clone: if devices.count < 10 { clone(device) } else { return false }
        case .serverCrash: crashServer()
        case .serverRestore: restoreServer()
        case .commitRefused: server.refuseCommit()
        case .flood:
            // A slow line would be busy with this for the rest of the run.
            guard scenario.qualities.isEmpty else { return false }
            for stream in streams(of: device) { flood(stream) }
        case .serverClockWeeks: setServerClockWrong()
        case .nodeStop: server.stopNode(for: absence())
        case .nodeClock: setNodeClockWrong()
        case .databaseRestart: restartDatabase()
        case .failOver: failOver()
        case .storeLocked: server.lockStore(for: chance.int64(0...10_000))
        case .signOut: device.signOut(wipes: false)
        case .accountSwitch: device.signIn(chance.int(1...scenario.accounts))
        case .wipe: device.signOut(wipes: true)
        }
        return true
    }

    private func partition(_ device: SimulatedDevice) {
        let affected = chance.coin() ? [device] : devices.filter { _ in chance.coin() }
        for device in affected {
            device.goOffline()
            after(absence()) { device.goOnline() }
        }
    }

    private func killProcess(of device: SimulatedDevice) {
        guard let process = device.processes.randomOne(chance) else { return }
        // In two of three cases in the middle of a save, when it matters.
        if chance.perMille(667) {
            process.duringSave = { [self] in kill(process) }
        } else {
            kill(process)
        }
    }

    private func kill(_ process: VirtualProcess) {
        let device = process.device
        // A paused machine starts nothing: its clocks do not advance.
        guard !isPeaceful, process.isAlive, !device.isPaused else { return }
        device.kill(process)
        after(absence()) { [self] in
            if !isPeaceful, device.isRunning { launch(store: process.store, on: device) }
        }
    }

    private func crash(_ device: SimulatedDevice) {
        device.crash()
        after(absence()) { [self] in start(device) }
    }

    func start(_ device: SimulatedDevice) {
        guard !device.isRunning else { return }
        device.start()
        noteClocks()
        launchProcesses(on: device)
    }

    private func stopProcess(of device: SimulatedDevice) {
        guard let process = device.processes.randomOne(chance) else { return }
        let stop = { [self] in
            if isPeaceful || process.isStopped { return }
            process.stop(losesLease: chance.coin())
            after(absence()) { process.goOn() }
        }
        // In half of the cases in the middle of a save.
        if chance.coin() { process.duringSave = stop } else { stop() }
    }

    /// The machine also continues as another one, at once or later, with everything in its memory.
    private func resumeSnapshot(of original: SimulatedDevice) {
        guard original.isRunning else { return }
        let device = copy(original)
        after(chance.coin() ? 0 : absence()) { [self] in goOn(device) }
    }

    /// Ends the pause of the machine or of its processes.
    func goOn(_ device: SimulatedDevice) {
        device.resume()
        noteClocks()
        for process in device.processes { process.goOn() }
    }

    private func makeUnreadable(_ device: SimulatedDevice) {
        device.setUnreadable(true)
        after(absence()) { device.setUnreadable(false) }
    }

    private func fill(_ device: SimulatedDevice) {
        device.setFull(true)
        after(absence()) { device.setFull(false) }
    }

    private func restore(_ device: SimulatedDevice) {
        if chance.coin() { return device.makeBackup() }
        device.crash()
        device.restore()
        start(device)
    }

    private func crashServer() {
        guard server.isShared else {
            server.crash()
            return after(absence() % 3_600_000) { [self] in server.start() }
        }
        after(absence() % 3_600_000, server.crashNode())
    }

    private func setNodeClockWrong() {
        after(absence(), server.setNodeClock(wrongBy: chance.int64(-600_000...600_000)))
    }

    private func restartDatabase() {
        server.stopDatabase()
        after(absence() % 60_000) { [self] in server.startDatabase() }
    }

    func failOver() {
        let goOn = leaveConnections()
        let comeBack = server.failOver()
        after(goOn == nil ? absence() % 60_000 : chance.int64(0...5_000)) { [self] in
            server.startDatabase()
            goOn?()
        }
        guard chance.coin() else { return }
        // Nobody has told it, for a while.
        after(absence() % 120_000) { [self] in
            comeBack()
            after(absence() % 120_000) { [self] in server.endFormer() }
        }
    }

    private func restoreServer() {
        if chance.coin() { return server.makeBackup() }
        let goOn = leaveConnections()
        server.restore()
        after(goOn == nil ? absence() % 3_600_000 : chance.int64(0...5_000)) { [self] in
            server.isShared ? server.startDatabase() : server.start()
            goOn?()
        }
    }

    /// Streams that are just going on by other connections do not notice that a server is replaced.
    /// - Returns: Opens those.
    private func leaveConnections() -> (() -> Void)? {
        guard scenario.faults.contains(.streamMoved) else { return nil }
        let goOn = devices.flatMap(\.processes).map { $0.leaveConnections() }
        return { for open in goOn { open() } }
    }

    /// The operator notices and corrects it, sooner or later.
    func setServerClockWrong() {
        let error = chance.int64(-28...28) * 86_400_000
        server.clockError += error
        after(absence()) { [self] in
            server.clockError -= error
            noteClocks()
        }
    }

    /// Sends more than any store may have, like a server under an attacker's control.
    private func flood(_ stream: VirtualStream) {
        guard let cursor = Cursor("flood") else { return }
        stream.send(
            .changes(
                ChangeSet(
                    records: Self.flood, cursor: cursor, serverMilliseconds: server.now,
                    isWhole: false)))
    }

    private static let flood: [Record] = {
        let stamp = Stamp(HybridTimestamp(milliseconds: 1, counter: 0), DeviceID(rawValue: 1))
        return (0...StoreLimits.ceiling.keysMax).compactMap { number in
            guard let key = try? Key("flood \(number)") else { return nil }
            return Record(key: key, content: .value(.boolean(true)), stamp: stamp)
        }
    }()
}

extension [VirtualProcess] {
    fileprivate func randomOne(_ chance: Chance) -> VirtualProcess? {
        isEmpty ? nil : chance.pick(self)
    }
}
