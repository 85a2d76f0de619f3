// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore
internal import UbiquitySimulation

/// A server, a network and machines in virtual time. Nothing happens until a caller advances it.
///
/// Shared state, for `@unchecked Sendable`:
///
/// * `eventQueue`, `time` and `workCount`, guarded by `timeLock`, which is only held for a moment:
///   an app's write schedules its save on any thread.
/// * Everything else, and the state of the machines and the server, guarded by `turn`. It is held
///   for one step of the event queue, and while a test changes something. The app is not notified
///   meanwhile, because an observer may wait for a thread that calls the store.
final class TestWorld: VirtualWorld, @unchecked Sendable {
    private let turn = NSRecursiveLock()
    /// Identifies the cloud, also among those that no longer exist.
    let name = UUID()
    let chance: Chance
    private let timeLock = NSLock()
    private var eventQueue = EventQueue()
    private var time: Int64
    /// The number of scheduled events that certainly happen. The others are attempts that wait for
    /// their time.
    private var workCount = 0
    /// Work that a step leaves to be done without `turn`.
    private var outside: (() -> Void)?
    private(set) var isOver = false
    private(set) lazy var server = VirtualServer(
        world: self, limits: StoreLimits(), allowance: Allowance(), flushMax: 5)
    private(set) lazy var network = VirtualNetwork(world: self)
    private(set) var machines: [TestMachine] = []
    private(set) var accountNames: [String] = []
    private var storeNumbers: [String: Int] = [:]
    private var keyrings: [Int: Keyring] = [:]
    private var lastStream = 0

    /// The maximum time for settling, in milliseconds: longer than any device leaves a server
    /// alone.
    static let settlingMax: Int64 = 3_600_000

    init(seed: UInt64, now: Int64) {
        chance = Chance(seed: seed)
        time = now
    }

    /// Changes the world while nothing happens in it.
    func inTurn<Result>(_ body: () throws -> Result) rethrows -> Result {
        try turn.withLock(body)
    }

    // MARK: - People

    func newMachine(_ name: String) -> TestMachine {
        let machine = TestMachine(name: name, number: machines.count, world: self)
        machines.append(machine)
        return machine
    }

    /// The machines that are signed in to an account, the oldest first.
    func machines(of account: Int) -> [(DeviceID, name: String, clockError: Int64)] {
        machines.compactMap { machine in
            guard machine.device.account == account,
                let id = machine.device.state.signedIn.flatMap({ DeviceID($0.device) })
            else { return nil }
            return (id, machine.name, machine.clockError)
        }
    }

    /// - Returns: The account's number.
    func newAccount(_ name: String) -> Int {
        accountNames.append(name)
        return accountNames.count
    }

    /// Seals an account, or gives it another key: its devices have it at once, but not those that
    /// are locked.
    func seal(_ account: Int) {
        let before = keyrings[account]
        keyrings[account] = proposal(after: before)
        server.sealWithKey(of: account)
        for machine in machines where machine.device.account == account {
            if machine.device.state.keyring == before { machine.device.takeKeys() }
        }
    }

    func number(ofStore identifier: String) -> Int {
        let number = storeNumbers[identifier] ?? storeNumbers.count
        storeNumbers[identifier] = number
        return number
    }

    /// Ends everything under way, which would otherwise keep itself in memory.
    func end() {
        turn.withLock {
            isOver = true
            for machine in machines { machine.end() }
            timeLock.withLock { (eventQueue, workCount) = (EventQueue(), 0) }
            machines = []
        }
    }

    // MARK: - VirtualWorld

    func newStreamID() -> Int {
        lastStream += 1
        return lastStream
    }

    func keyring(of account: Int) -> Keyring? { keyrings[account] }

    func identifier(ofStore number: Int) -> StoreIdentifier {
        guard let name = storeNumbers.first(where: { $0.value == number })?.key,
            let identifier = try? StoreIdentifier(name)
        else { preconditionFailure("There is no store \(number).") }
        return identifier
    }

    func delay(of device: Int, _ direction: Direction) -> Int64 {
        chance.int64(machines[device].network.milliseconds)
    }

    func quality(of device: Int) -> LineQuality { LineQuality() }

    func strikes(_ fault: Fault, device: Int) -> Bool {
        let share = machines[device].network.share(of: fault)
        return share > 0 && chance.perMille(Int((min(share, 1) * 1_000).rounded()))
    }

    func note(_ observation: @autoclosure () -> Observation) {}

    // MARK: - Time

    var now: Int64 { timeLock.withLock { time } }

    func at(_ time: Int64, _ body: @escaping () -> Void) {
        timeLock.withLock {
            workCount += 1
            eventQueue.add(at: time) { [self] in
                body()
                timeLock.withLock { workCount -= 1 }
            }
        }
    }

    /// Schedules an event that nobody has to wait for: an attempt whose time has not come.
    func wake(after milliseconds: Int64, _ body: @escaping () -> Void) {
        timeLock.withLock { eventQueue.add(at: time + milliseconds, body) }
    }

    /// Runs a closure at the end of the current step, without ``turn``.
    func doOutside(_ body: @escaping () -> Void) { outside = body }

    /// Runs the next event.
    /// - Returns: False if there is none before that time.
    private func step(before end: Int64) -> Bool {
        let (isDone, rest) = turn.withLock { () -> (Bool, (() -> Void)?) in
            guard let body = takeNext(before: end) else { return (false, nil) }
            body()
            defer { outside = nil }
            return (true, outside)
        }
        rest?()
        return isDone
    }

    private func takeNext(before end: Int64) -> (() -> Void)? {
        timeLock.withLock {
            guard let next = eventQueue.nextTime, next <= end, let item = eventQueue.removeNext()
            else {
                return nil
            }
            time = max(time, item.time)
            return item.body
        }
    }

    /// Lets this much time pass.
    func pass(_ milliseconds: Int64) {
        let end = now + milliseconds
        while step(before: end) {}
        timeLock.withLock { time = max(time, end) }
    }

    /// Lets time pass until a condition holds.
    /// - Returns: Nil, or a description of the problem.
    func pass(until isDone: () -> Bool) -> String? {
        let end = now + Self.settlingMax
        while !isDone() {
            if step(before: end) || isDone() { continue }
            return "what it waits for was not done"
        }
        return nil
    }

    // MARK: - Settling

    /// Lets time pass until everything has settled.
    /// - Returns: Nil, or what did not settle.
    func settle() -> String? {
        guard pass(until: { isSettled }) != nil else { return nil }
        let causes = turn.withLock { unsettled }
        return causes.isEmpty ? "a message is under way" : causes.joined(separator: "; ")
    }

    private var isSettled: Bool {
        guard !hasWork else { return false }
        // Another thread may have been in the middle of a step.
        return turn.withLock { !hasWork && unsettled.isEmpty }
    }

    private var hasWork: Bool { timeLock.withLock { workCount > 0 } }

    private var unsettled: [String] {
        machines.flatMap(\.device.processes).compactMap(\.unsettled)
    }

    /// Whether the server accepts requests.
    var isServing: Bool { server.isRunning && server.deniesUntil <= now }
}
