// SPDX-License-Identifier: Apache-2.0

import UbiquityCore
import UbiquitySimulation

/// The devices of a person whose apps are those of a client under test, with the simulator's server
/// and network. In virtual time and in one thread.
final class ConformanceWorld {
    let scenario: Scenario
    let chance: Chance
    let journal: Journal
    let limits: StoreLimits
    private let program: ClientProgram
    private let clock: TrueTime
    private var eventQueue = EventQueue()
    private(set) var isPeaceful = false
    private(set) var devices: [ConformanceDevice] = []
    private(set) lazy var server = VirtualServer(
        world: self, limits: scenario.limits, allowance: scenario.allowance,
        flushMax: scenario.flushMax)
    private(set) lazy var network = VirtualNetwork(world: self)
    let mergedKeys: [Key: MergePolicy]
    /// The client's violation of the rules for clients, and its time; nil if there has been none.
    private(set) var trouble: (sentence: String, time: Int64)?
    private(set) var steps = 0
    private var lastProcess = 0
    private var lastStream = 0
    private(set) var lastWrite = 0
    private var knownClocks: [Int: VirtualClock] = [:]

    static let account = 1
    static let store = 1

    init(
        scenario: Scenario, chance: Chance, journal: Journal, clock: TrueTime,
        program: ClientProgram
    ) {
        self.scenario = scenario
        self.chance = chance
        self.journal = journal
        self.clock = clock
        self.program = program
        limits = scenario.limits
        mergedKeys = scenario.mergedKeys
        server.streamsMax = scenario.streamsMax
        server.partsMax = scenario.partsMax
        note(.serverClock(error: 0))
        _ = ask(.begin)
        for number in 1...scenario.devices {
            let hours = Int64(scenario.skewHoursMax) * 3_600_000
            let device = ConformanceDevice(
                number: number, clockError: chance.int64(-hours...hours), world: self)
            devices.append(device)
            device.signIn(Self.account)
            noteClocks()
            launch(on: device)
        }
        if !scenario.faults.isEmpty { planFault() }
    }

    func launch(on device: ConformanceDevice) {
        guard device.isRunning, device.processes.isEmpty else { return }
        let process = ClientProcess(device: device, world: self)
        device.add(process)
        process.start()
    }

    /// Reports changed clocks to the journal.
    func noteClocks() {
        for device in devices where knownClocks[device.number] != device.clock {
            let clock = device.clock
            knownClocks[device.number] = clock
            note(
                .clock(
                    device: device.number, error: clock.error, drift: clock.drift,
                    boot: clock.boot))
        }
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

    func complain(_ sentence: String) { trouble = trouble ?? (sentence, now) }

    // MARK: - Names

    func newProcessNumber() -> Int {
        lastProcess += 1
        return lastProcess
    }

    func newWriteNumber() -> Int {
        lastWrite += 1
        return lastWrite
    }

    // MARK: - Time

    private var isOver: Bool { trouble != nil || journal.violation != nil }

    private func step(before end: Int64 = .max) -> Bool {
        guard let next = eventQueue.nextTime, next <= end, let item = eventQueue.removeNext() else {
            return false
        }
        clock.now = item.time
        item.body()
        return true
    }

    func runUnderFaults(steps max: Int) {
        while steps < max, !isOver, step() { steps += 1 }
    }

    private func pass(_ milliseconds: Int64) {
        let end = now + milliseconds
        while !isOver, step(before: end) {}
        clock.now = max(now, end)
    }

    /// Ends everything under way, which would otherwise keep itself in memory.
    func end() {
        eventQueue = EventQueue()
        for device in devices { for process in device.processes { process.release() } }
    }

    // MARK: - Peace

    /// The longest pause of a device (after a refused credential), the time to notice a silent
    /// connection, and the time to send; in milliseconds.
    private static let settlingMilliseconds: Int64 = 300_000 + 60_000 + 60_000
    /// The additional time if devices have no streams.
    private static let pollingMilliseconds: Int64 = 130_000
    private static let spreadingMilliseconds: Int64 = 20_000

    /// Ends all faults and runs all machines; then everything must come to agree. In the end, every
    /// process is killed, and what its disk has must be the same.
    func settle() {
        isPeaceful = true
        server.slowness = 0
        server.deniesUntil = 0
        server.isBusyUntil = 0
        server.start()
        for device in devices {
            device.goOnline()
            device.start()
            launch(on: device)
        }
        noteClocks()
        let polling = scenario.polls ? Self.pollingMilliseconds : 0
        pass(Self.settlingMilliseconds + polling)
        noteSettled()
        guard !isOver else { return }
        for device in devices { for process in device.processes { process.probe() } }
        pass(Self.spreadingMilliseconds + polling)
        noteSettled()
        guard !isOver else { return }
        for device in devices {
            device.goOffline()
            for process in device.processes { device.kill(process) }
            launch(on: device)
        }
        noteSettled(isOnline: false)
    }

    private func noteSettled(isOnline: Bool = true) {
        guard !isOver else { return }
        note(
            .settled(
                Settlement(
                    server: server.stores.mapValues(\.records),
                    folded: server.stores.mapValues(\.increments),
                    processes: devices.flatMap(\.processes).map { $0.settled(isOnline) })))
    }
}

typealias ConformanceDevice = VirtualDevice<ClientProcess>

extension ConformanceWorld: VirtualWorld {
    /// The number of requests in a thousand that suffer from a fault of the run.
    private static let oftenPerMille = 60

    var now: Int64 { clock.now }

    func at(_ time: Int64, _ body: @escaping () -> Void) { eventQueue.add(at: time, body) }

    func newStreamID() -> Int {
        lastStream += 1
        return lastStream
    }

    func delay(of device: Int, _ direction: Direction) -> Int64 {
        chance.int64(0...(isPeaceful ? 20 : scenario.delayMax(direction)))
    }

    func quality(of device: Int) -> LineQuality {
        scenario.qualities.isEmpty
            ? LineQuality() : scenario.qualities[device % scenario.qualities.count]
    }

    func strikes(_ fault: Fault, device: Int) -> Bool {
        guard !isPeaceful, scenario.faults.contains(fault), chance.perMille(Self.oftenPerMille)
        else { return false }
        journal.count(fault)
        return true
    }

    func note(_ observation: @autoclosure () -> Observation) { journal.note(observation()) }
}
