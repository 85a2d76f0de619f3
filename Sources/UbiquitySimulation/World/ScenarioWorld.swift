// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A world whose people, limits and faults are those of a scenario, in virtual time and in one
/// thread.
package protocol ScenarioWorld: VirtualWorld {
    associatedtype Program: ScenarioProgram

    var scenario: Scenario { get }
    var journal: Journal { get }
    var run: RunState { get }
    var devices: [VirtualDevice<Program>] { get }
    /// The first broken promise; nil if all were kept.
    var violation: Journal.Violation? { get }
    /// The mean durations of absences, in milliseconds.
    var absences: [Int64] { get }

    /// Causes a fault that other worlds do not have, or have in another way.
    /// - Returns: Whether it happened.
    func cause(_ fault: Fault, on device: VirtualDevice<Program>) -> Bool

    /// Ends all faults and runs all machines; then everything must come to agree.
    func settle()
}

/// A process in a ``ScenarioWorld``.
package protocol ScenarioProgram: VirtualProgram {
    /// In the order in which they were opened.
    var openStreams: [VirtualStream] { get }

    /// Breaks its reference cycles.
    func release()
}

extension ScenarioWorld {
    package var violation: Journal.Violation? { journal.violation }

    package var isPeaceful: Bool { run.isPeaceful }

    package func keyring(of account: Int) -> Keyring? { run.keyrings[account] }

    package func note(_ observation: @autoclosure () -> Observation) { journal.note(observation()) }

    /// Reports changed clocks to the journal.
    package func noteClocks() {
        for device in devices where run.knownClocks[device.number] != device.clock {
            let clock = device.clock
            run.knownClocks[device.number] = clock
            note(
                .clock(
                    device: device.number, error: clock.error, drift: clock.drift,
                    boot: clock.boot))
        }
        guard run.knownServerError != server.clockError else { return }
        run.knownServerError = server.clockError
        note(.serverClock(error: server.clockError))
    }

    /// Reports the state in which everything should agree.
    package func noteSettled(_ processes: [Settlement.Process]) {
        note(
            .settled(
                Settlement(
                    server: Dictionary(
                        uniqueKeysWithValues: server.stores.map { name, store in
                            (name, opener(of: name).opened(store.records))
                        }),
                    folded: server.stores.mapValues(\.increments), processes: processes,
                    readable: server.stores.reduce(into: [:]) { readable, store in
                        readable[store.key] = store.value.unsealed(
                            with: generation(of: store.key.account))
                    })))
    }

    // MARK: - Time

    package var now: Int64 { run.clock.now }

    package func at(_ time: Int64, _ body: @escaping () -> Void) { run.at(time, body) }

    /// - Parameter max: The number of steps; fewer if something is broken.
    package func runUnderFaults(steps max: Int) {
        while run.steps < max, violation == nil, run.step() { run.steps += 1 }
    }

    /// Lets this much time pass.
    package func pass(_ milliseconds: Int64) {
        let end = now + milliseconds
        while violation == nil, run.step(before: end) {}
        run.clock.now = max(now, end)
    }

    /// Ends everything under way, which would otherwise keep itself in memory.
    package func end() {
        run.end()
        for process in devices.flatMap(\.processes) { process.release() }
    }

    // MARK: - Numbers

    package func newProcessNumber() -> Int {
        run.lastProcess += 1
        return run.lastProcess
    }

    package func newStreamID() -> Int {
        run.lastStream += 1
        return run.lastStream
    }

    package func newWriteNumber() -> Int {
        run.lastWrite += 1
        return run.lastWrite
    }

    // MARK: - The network

    package func delay(of device: Int, _ direction: Direction) -> Int64 {
        chance.int64(0...(isPeaceful ? 20 : scenario.delayMax(direction)))
    }

    package func quality(of device: Int) -> LineQuality {
        scenario.qualities.isEmpty
            ? LineQuality() : scenario.qualities[device % scenario.qualities.count]
    }

    package func strikes(_ fault: Fault, device: Int) -> Bool {
        if isPeaceful { return false }
        let isCertain = now < run.certain[fault]?[device] ?? 0
        guard isCertain || scenario.faults.contains(fault) && chance.perMille(Fault.oftenPerMille)
        else { return false }
        journal.count(fault)
        return true
    }
}

// MARK: - Faults

extension ScenarioWorld {
    /// Schedules the next fault, one of those in this run.
    package func planFault() {
        let faults = Fault.allCases.filter { scenario.faults.contains($0) }
        after(chance.interval(mean: scenario.faultInterval)) { [self] in
            guard !isPeaceful else { return }
            cause(chance.pick(faults))
            planFault()
        }
    }

    private func cause(_ fault: Fault) {
        let device = chance.pick(devices)
        switch fault {
        case .cut: for stream in streams(of: device) { stream.cut() }
        case .halfOpen: for stream in streams(of: device) { stream.goSilent() }
        case .clockJump: device.clock.error += chance.int64(-7_200_000...7_200_000)
        case .drift: device.clock.drift = chance.int64(-200...200)
        case .compactTombstones: server.compactTombstones()
        case .serverSlow: slowServer()
        case .serverBusy: server.isBusyUntil = now + absence() % 60_000
        case .overflow: server.overflow()
        case .limitsChange: changeLimits()
        case .unauthorized: server.deniesUntil = now + absence() % 600_000
        default: guard cause(fault, on: device) else { return }
        }
        journal.count(fault)
        noteClocks()
    }

    private func slowServer() {
        server.slowness = chance.int64(0...2_000)
        after(absence()) { [self] in server.slowness = 0 }
    }

    func changeLimits() {
        server.limits.keysMax = chance.int(4...20)
        server.limits.storeBytesMax = chance.int(200...2_000)
    }

    /// A duration of absence in milliseconds.
    package func absence() -> Int64 { chance.interval(mean: chance.pick(absences)) }

    func streams(of device: VirtualDevice<Program>) -> [VirtualStream] {
        device.processes.flatMap(\.openStreams)
    }
}
