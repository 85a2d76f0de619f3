// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// The devices of a person whose apps are those of a client under test, with the simulator's server
/// and network. In virtual time and in one thread.
final class ConformanceWorld {
    private(set) var scenario: Scenario
    /// Whether the client can have several processes on a device, or at least knows the words.
    private(set) var hasProcesses = false
    let chance: Chance
    let journal: Journal
    let limits: StoreLimits
    let run: RunState
    private let program: ClientProgram
    private(set) var devices: [ConformanceDevice] = []
    private(set) lazy var server = VirtualServer(
        world: self, limits: scenario.limits, allowance: scenario.allowance,
        flushMax: scenario.flushMax)
    private(set) lazy var network = VirtualNetwork(world: self)
    let mergedKeys: [Key: MergePolicy]
    /// The number of large values that apps may still write: each makes the run slower.
    private var largeLeft = 3
    /// The devices with a first sync on their disk.
    var firstSyncs: Set<Int> = []
    /// The client's violation of the rules for clients; nil if there has been none.
    private var trouble: Journal.Violation?
    let absences: [Int64] = [100, 5_000, 120_000, 4_000_000]

    static let account = 1
    static let store = 1

    init(
        scenario: Scenario, chance: Chance, journal: Journal, clock: TrueTime,
        program: ClientProgram
    ) {
        self.scenario = scenario
        self.chance = chance
        self.journal = journal
        run = RunState(clock: clock)
        self.program = program
        limits = scenario.limits
        mergedKeys = scenario.mergedKeys
        server.streamsMax = scenario.streamsMax
        server.partsMax = scenario.partsMax
        sealFromTheFirstDay()
        noteClocks()
        let processes = ask(.begin(processes: scenario.processes))?.processes
        hasProcesses = processes != nil
        if !hasProcesses { self.scenario.faults.subtract(Subject.processes.faults) }
        self.scenario.processes = max(1, min(scenario.processes, processes ?? 1))
        for number in 1...scenario.devices {
            let hours = Int64(scenario.skewHoursMax) * 3_600_000
            let device = ConformanceDevice(
                number: number, clockError: chance.int64(-hours...hours), world: self)
            devices.append(device)
            device.signIn(Self.account)
            noteClocks()
            launch(on: device)
        }
        if !self.scenario.faults.isEmpty { planFault() }
    }

    func launch(on device: ConformanceDevice) {
        for place in 0..<scenario.processes { launch(place, on: device) }
    }

    func launch(_ place: Int, on device: ConformanceDevice) {
        guard device.isRunning, !device.processes.contains(where: { $0.place == place }) else {
            return
        }
        let process = ClientProcess(device: device, place: place, world: self)
        device.add(process)
        process.start()
    }

    // MARK: - The client

    /// - Returns: Nil if there is no answer, which ends the run.
    func ask(_ command: ClientCommand) -> ClientAnswer? {
        guard trouble == nil else { return nil }
        do { return try ClientAnswer(program.ask(command.line)) } catch {
            complain("the client broke the line protocol: \(error)")
            return nil
        }
    }

    func takesLarge() -> Bool {
        largeLeft -= 1
        return largeLeft >= 0
    }

    func complain(_ sentence: String) {
        guard trouble == nil else { return }
        trouble = Journal.Violation(
            checker: ConformanceRun.harness, complaint: sentence, time: now - run.start)
    }

    // MARK: - Peace

    /// Ends all faults and runs all machines; then everything must come to agree. In the end, every
    /// process is killed, and what its disk has must be the same.
    func settle() {
        run.isPeaceful = true
        server.slowness = 0
        server.deniesUntil = 0
        server.isBusyUntil = 0
        server.start()
        for device in devices {
            device.goOnline()
            for process in device.processes {
                process.isDiskClosed = false
                process.diskFailure = nil
                process.goOn()
                process.startAgainIfLost()
            }
            device.start()
            launch(on: device)
        }
        noteClocks()
        pass(scenario.settlingMilliseconds)
        noteSettled()
        // One writes alone: who writes would notice a stream that has ended unheard.
        if hasProcesses { probe([chance.pick(devices)]) }
        probe(devices)
        guard violation == nil else { return }
        for device in devices {
            device.goOffline()
            for process in device.processes { device.kill(process) }
            launch(on: device)
        }
        noteSettled(isOnline: false)
    }

    private func probe(_ devices: [ConformanceDevice]) {
        guard violation == nil else { return }
        for device in devices { for process in device.processes { process.probe() } }
        pass(scenario.spreadingMilliseconds)
        noteSettled()
    }

    private func noteSettled(isOnline: Bool = true) {
        guard violation == nil else { return }
        noteSettled(devices.flatMap(\.processes).map { $0.settled(isOnline) })
    }
}

typealias ConformanceDevice = VirtualDevice<ClientProcess>

extension ConformanceWorld: ScenarioWorld {
    var violation: Journal.Violation? { trouble ?? journal.violation }
}
