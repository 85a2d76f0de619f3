// SPDX-License-Identifier: Apache-2.0

public import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// A person's device in a ``TestCloud``: one sign-in for all its apps, a disk, a clock and a network.
public final class TestDevice: Sendable {
    /// The cloud, which exists for as long as one of its devices is held.
    public let cloud: TestCloud
    let machine: TestMachine

    init(cloud: TestCloud, machine: TestMachine) {
        self.cloud = cloud
        self.machine = machine
    }

    /// What it was called when it was made.
    public var name: String { machine.name }

    func change<Result>(_ body: (TestMachine) throws -> Result) rethrows -> Result {
        try cloud.world.inTurn { try body(machine) }
    }

    // MARK: - Apps

    /// The app under test, as a process of this device.
    public var app: TestProcess { newProcess("app") }

    /// A process by its name, such as an app's extension or helper. It begins with the first store that
    /// it opens.
    public func newProcess(_ name: String) -> TestProcess { TestProcess(name: name, device: self) }

    /// Opens a store as the app does when it starts. What it finds on the disk can be read at once; what
    /// the server has comes with `settle()`.
    ///
    /// - Returns: The same object for the same identifier, until the app ends. The device holds it.
    public func openStore(
        _ identifier: String, file: StaticString = #fileID, line: UInt = #line
    ) -> UbiquitousKeyValueStore {
        app.openStore(identifier, file: file, line: line)
    }

    /// Opens a store with settings of one's own, see `openStore()`.
    public func openStore(
        _ configuration: UbiquityConfiguration, file: StaticString = #fileID, line: UInt = #line
    ) -> UbiquitousKeyValueStore {
        app.openStore(configuration, file: file, line: line)
    }

    /// Ends all processes without a word, as `kill -9` does: what had not reached the disk is lost.
    ///
    /// A store saves as soon as time passes: what was written before the last `settle()`,
    /// `advance()` or `synchronize()` is on the disk. The stores that were open
    /// must not be written to any more; `openStore()` starts the app again.
    public func kill() { change { $0.kill($0.device.processes) } }

    /// The device loses its power and starts again: all processes end as by ``kill()``, and its clock
    /// begins to count anew.
    public func restart() { change { $0.reboot() } }

    /// The app is removed with all that it stored here, and installed anew. The sign-in stays.
    public func reinstall() { change { $0.wipe() } }

    // MARK: - Notifications

    /// All that stores of this device posted, the oldest first.
    public var notifications: [TestNotification] { machine.notifications }

    /// Empties ``notifications``, for what comes next.
    public func forgetNotifications() { machine.forgetNotifications() }
}
