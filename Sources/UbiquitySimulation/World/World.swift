// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// People with their devices, a server and a network, in virtual time and in one thread.
final class World {
    let scenario: Scenario
    let chance: Chance
    let journal: Journal
    let run: RunState
    private(set) var devices: [SimulatedDevice] = []
    private(set) lazy var server = VirtualServer(
        world: self, limits: scenario.limits, allowance: scenario.allowance,
        flushMax: scenario.flushMax, nodes: scenario.nodes,
        hasSynchronousStandby: scenario.hasSynchronousStandby)
    private(set) lazy var network = VirtualNetwork(
        world: self, requestMillisecondsMax: scenario.requestMillisecondsMax)
    private let plainKeys: [Key]
    private let groups: [[Key]]
    /// Nil if the server keeps all rules.
    private(set) lazy var hostile = scenario.isHostile ? HostileServer(chance) : nil
    /// The keys whose writes merge.
    let mergedKeys: [Key: MergePolicy]
    /// The counts that mirrors of preferences keep beside the stores.
    var externalCounts: [DiskReference: [Key: ExternalCount]] = [:]
    let absences: [Int64] = [100, 5_000, 120_000, 4_000_000, 90_000_000]

    init(scenario: Scenario, chance: Chance, journal: Journal, clock: TrueTime) {
        self.scenario = scenario
        self.chance = chance
        self.journal = journal
        run = RunState(clock: clock)
        plainKeys = scenario.plainKeys
        groups = scenario.groupedKeys
        mergedKeys = scenario.mergedKeys
        populate()
    }

    private func populate() {
        server.streamsMax = scenario.streamsMax
        server.partsMax = scenario.partsMax
        server.database.historyLimits = scenario.history
        server.database.logsVersions = true
        if let max = scenario.foldedMax { server.foldsCompaction.tombstonesMax = max }
        if scenario.faults.contains(.hintLost) { server.lostHintsPerMille = 500 }
        if scenario.faults.contains(.hintLate) { server.hintMillisecondsMax = 30_000 }
        if scenario.faults.contains(.serverClockJump) {
            // A device of a sealed account follows no server whose clock is a day ahead of its own.
            let hours: Int64 = scenario.isSealed ? 12 : 24
            server.clockError = chance.int64(-hours * 3_600_000...hours * 3_600_000)
        }
        sealFromTheFirstDay()
        for number in 1...scenario.devices { addDevice(newDevice(number: number)) }
        noteClocks()
        if !scenario.faults.isEmpty { planFault() }
        planStory()
        beginOffline()
        if scenario.isSealed { planSealing() }
    }

    private func addDevice(_ device: SimulatedDevice) {
        devices.append(device)
        // Some devices exist for a while before their person signs in.
        if chance.perMille(700) { device.signIn(chance.int(1...scenario.accounts)) }
        after(chance.interval(mean: scenario.workInterval)) { [self] in
            if !isPeaceful, device.account == nil {
                device.signIn(chance.int(1...scenario.accounts))
            }
        }
        launchProcesses(on: device)
    }

    func launchProcesses(on device: SimulatedDevice) {
        for number in 0..<scenario.processes {
            launch(store: number % scenario.stores, on: device)
        }
    }

    /// A new machine with a copy of another one's disks and sign-in.
    func clone(_ original: SimulatedDevice) {
        let device = newDevice(number: devices.count + 1)
        device.become(original)
        devices.append(device)
        launchProcesses(on: device)
    }

    /// A new machine of a person who has others. It is offline.
    func join(_ account: Int?) -> SimulatedDevice {
        let device = newDevice(number: devices.count + 1)
        devices.append(device)
        device.goOffline()
        if let account { device.signIn(account) }
        launchProcesses(on: device)
        noteClocks()
        return device
    }

    /// A new machine with a copy of another one, including its memory. Its processes are stopped.
    func copy(_ original: SimulatedDevice) -> SimulatedDevice {
        let device = newDevice(number: devices.count + 1)
        device.pause(as: original)
        devices.append(device)
        for disk in original.allDisks {
            for process in disk.processes.compactMap({ $0 as? VirtualProcess }) {
                device.add(VirtualProcess(copying: process, on: device))
            }
        }
        return device
    }

    // MARK: - For the apps

    func plainKey() -> Key { chance.pick(plainKeys) }

    /// The other processes that write in the name of the same device, including those of its
    /// clones.
    func twins(of process: VirtualProcess) -> [VirtualProcess] {
        let name = process.device.state.signedIn?.device
        return devices.filter { name != nil && $0.state.signedIn?.device == name }
            .flatMap(\.processes)
            .filter { $0 !== process && $0.store == process.store && !$0.isStopped }
    }

    func group() -> [Key]? { groups.isEmpty ? nil : chance.pick(groups) }
}

typealias SimulatedDevice = VirtualDevice<VirtualProcess>

extension World: ScenarioWorld {
    /// The delay before an app whose store could not be opened is started again.
    private static let relaunchMilliseconds: Int64 = 1_000

    func newDevice(number: Int) -> SimulatedDevice {
        let hours = Int64(scenario.skewHoursMax) * 3_600_000
        return SimulatedDevice(
            number: number, clockError: chance.int64(-hours...hours), world: self)
    }

    /// Declares the rule, as apps do at their start.
    func declareRule(in engine: inout SyncEngine) {
        for (key, policy) in mergedKeys where policy == .register {
            engine.setPolicy(policy, resolver: AppOperation.resolver, for: key)
        }
    }

    func launch(store: Int, on device: SimulatedDevice) {
        guard device.isRunning else { return }
        guard device.canOpen(store) else {
            return after(Self.relaunchMilliseconds) { [self] in launch(store: store, on: device) }
        }
        device.add(VirtualProcess(device: device, store: store, world: self))
    }
}
