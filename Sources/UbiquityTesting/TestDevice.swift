// SPDX-License-Identifier: Apache-2.0

public import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// A person's device in a ``TestCloud``: one sign-in for all its apps, a disk, a clock and a network.
/// <!-- Snippets/TestingYourApp.swift: faults -->
/// ```swift
/// func faults(_ cloud: TestCloud, _ phone: TestDevice) {
///     phone.goOffline()
///     phone.network.delay = .seconds(2) ... .seconds(5)
///     phone.network.lostAnswers = 0.3
///     phone.network.isSilent = true
///     phone.clockError = .seconds(600)
///     phone.isDiskFull = true
///     phone.kill()
///     phone.restart()
///     phone.reinstall()
///     phone.signOut(wipes: true)
///     phone.signIn(to: cloud.newAccount("of a friend"))
///
///     let backup = cloud.server.backUp()
///     cloud.server.stop()
///     cloud.server.restore(backup)
///     cloud.server.forgetDeletions()
///     cloud.server.limits.keysMax = 3
///     cloud.server.refusesCredentials = true
/// }
/// ```
public final class TestDevice: Sendable {
    /// The cloud, which exists as long as any of its devices is retained.
    public let cloud: TestCloud
    let machine: TestMachine

    init(cloud: TestCloud, machine: TestMachine) {
        self.cloud = cloud
        self.machine = machine
    }

    /// The name given when the device was created.
    public var name: String { machine.name }

    func change<Result>(_ body: (TestMachine) throws -> Result) rethrows -> Result {
        try cloud.world.inTurn { try body(machine) }
    }

    // MARK: - Apps

    /// The app under test, as a process of this device.
    public var app: TestProcess { newProcess("app") }

    /// A process with this name, such as an app's extension or helper. It starts with the first
    /// store that it opens.
    public func newProcess(_ name: String) -> TestProcess { TestProcess(name: name, device: self) }

    /// Opens a store like an app that starts. Values on disk can be read at once; the server's
    /// values come with `settle()`.
    ///
    /// - Returns: The same object for the same identifier, until the app ends. The device retains
    ///   it.
    public func openStore(
        _ identifier: String, file: StaticString = #fileID, line: UInt = #line
    ) -> UbiquitousKeyValueStore {
        app.openStore(identifier, file: file, line: line)
    }

    /// Opens a store with a configuration, see `openStore()`.
    public func openStore(
        _ configuration: UbiquityConfiguration, file: StaticString = #fileID, line: UInt = #line
    ) -> UbiquitousKeyValueStore {
        app.openStore(configuration, file: file, line: line)
    }

    /// Ends all processes abruptly, like `kill -9`: anything not on disk is lost.
    ///
    /// A store saves as soon as time passes, so writes before the last `settle()`, `advance()` or
    /// `synchronize()` are on disk. Do not write to the stores that were open any more;
    /// `openStore()` starts the app again.
    public func kill() { change { $0.kill($0.device.processes) } }

    /// Restarts the device after a loss of power: all processes end as by ``kill()``, and the
    /// device's uptime starts again.
    public func restart() { change { $0.reboot() } }

    /// Removes the app with everything that it stored here, and installs it again. The sign-in
    /// stays.
    public func reinstall() { change { $0.wipe() } }

    // MARK: - Notifications

    /// All notifications posted by stores of this device, the oldest first.
    public var notifications: [TestNotification] { machine.notifications }

    /// Empties ``notifications``.
    public func forgetNotifications() { machine.forgetNotifications() }
}
