// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore
internal import UbiquitySimulation

/// A person's device in the virtual world.
///
/// Shared state, for `@unchecked Sendable`: `clock` and `posted` are guarded by mutexes, because an
/// app reads the time and is notified on any thread; everything else by the world's turn.
final class TestMachine: @unchecked Sendable {
    let name: String
    let world: TestWorld
    let device: VirtualDevice<TestProgram>
    var network = TestNetwork() {
        didSet { if network.isSilent { silence() } }
    }
    var isDiskFull = false
    private let clock: Mutex<VirtualClock>
    private let posted = Mutex<[TestNotification]>([])

    init(name: String, number: Int, world: TestWorld) {
        self.name = name
        self.world = world
        device = VirtualDevice(number: number, clockError: 0, world: world)
        clock = Mutex(device.clock)
    }

    // MARK: - Clock

    /// The current reading of its clocks.
    var reading: ClockReading {
        let now = world.now
        return clock.withLock { $0.reading(at: now) }
    }

    var clockError: Int64 {
        get { clock.withLock { $0.error } }
        set {
            device.clock.error = newValue
            copyClock()
        }
    }

    private func copyClock() {
        let copy = device.clock
        clock.withLock { $0 = copy }
    }

    // MARK: - Network

    /// Whether messages can reach the server.
    var isConnectable: Bool { device.isOnline && network.isPassable && world.isServing }

    /// Whether its account is not sealed, or it has the key that the server has the mark of.
    var hasKey: Bool {
        guard let account = device.account else { return true }
        let mark = world.server.sealings[account]?.generation ?? 0
        return (device.state.keyring?.current ?? 0) == mark
    }

    private func silence() {
        for stream in device.processes.flatMap(\.openStreams) { stream.goSilent() }
    }

    // MARK: - Processes

    func programs(of process: String) -> [TestProgram] {
        device.processes.filter { $0.process == process }
    }

    func program(of process: String, store: String) -> TestProgram? {
        device.processes.first { $0.process == process && $0.identifier == store }
    }

    func kill(_ programs: [TestProgram]) { for program in programs { device.kill(program) } }

    func reboot() {
        device.crash()
        device.start()
        copyClock()
    }

    /// Removes everything that apps stored.
    func wipe() {
        kill(device.processes)
        for disk in device.allDisks { device.wipe(disk) }
    }

    func end() { kill(device.processes) }

    // MARK: - Notifications

    var notifications: [TestNotification] { posted.withLock(\.self) }

    func note(_ notification: TestNotification) { posted.withLock { $0.append(notification) } }

    func forgetNotifications() { posted.withLock { $0 = [] } }
}
