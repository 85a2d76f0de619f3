// SPDX-License-Identifier: Apache-2.0

public import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// A person's device in a ``TestCloud``: one sign-in for all its apps, a disk, a clock and a network.
/// <!-- Snippets/TestingReference.swift: device -->
/// ```swift
/// let phone = cloud.newDevice("phone")
/// let store = phone.openStore("TEAMID.com.example.notes")
/// store.set("dark", forKey: "theme")
/// phone.reinstall()  // and the values come back from the server
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
    /// <!-- Snippets/TestingReference.swift: open-configured -->
    /// ```swift
    /// var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.game")
    /// configuration.firstSync = .timestamps
    /// let game = phone.openStore(configuration)
    /// ```
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
    /// <!-- Snippets/TestingReference.swift: kill -->
    /// ```swift
    /// let store = phone.openStore("TEAMID.com.example.notes")
    /// store.set("first", forKey: "note.1")
    /// store.synchronize()
    /// store.set("second", forKey: "note.2")
    /// phone.kill()
    ///
    /// let reopened = phone.openStore("TEAMID.com.example.notes")
    /// #expect(reopened.dictionaryRepresentation.count == 1)
    /// ```
    public func kill() { change { $0.kill($0.device.processes) } }

    /// Restarts the device after a loss of power: all processes end as by ``kill()``, and the
    /// device's uptime starts again.
    /// <!-- Snippets/TestingReference.swift: restart -->
    /// ```swift
    /// reopened.set("third", forKey: "note.3")
    /// cloud.settle()
    /// phone.restart()
    /// let afterwards = phone.openStore("TEAMID.com.example.notes")
    /// #expect(afterwards.string(forKey: "note.3") == "third")
    /// ```
    public func restart() { change { $0.reboot() } }

    /// Removes the app with everything that it stored here, and installs it again. The sign-in
    /// stays.
    public func reinstall() { change { $0.wipe() } }

    // MARK: - Notifications

    /// All notifications posted by stores of this device, the oldest first.
    /// <!-- Snippets/TestingReference.swift: notifications -->
    /// ```swift
    /// phone.forgetNotifications()
    /// other.set("dark", forKey: "theme")
    /// cloud.settle()
    /// #expect(phone.notifications.map(\.changedKeys) == [["theme"]])
    /// ```
    public var notifications: [TestNotification] { machine.notifications }

    /// Empties ``notifications``.
    public func forgetNotifications() { machine.forgetNotifications() }
}
