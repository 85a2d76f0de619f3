// SPDX-License-Identifier: Apache-2.0

public import Ubiquity
internal import UbiquityCore
internal import UbiquitySimulation

/// One of several processes of a ``TestDevice`` that open the same stores: an app, its extension, a
/// helper.
public struct TestProcess: Sendable {
    /// Processes of one device with the same name are the same process.
    public let name: String
    /// The device that it runs on.
    public let device: TestDevice

    init(name: String, device: TestDevice) {
        self.name = name
        self.device = device
    }

    /// Opens a store like the device's `openStore()`.
    public func openStore(
        _ identifier: String, file: StaticString = #fileID, line: UInt = #line
    ) -> UbiquitousKeyValueStore {
        openStore(UbiquityConfiguration(identifier: identifier), file: file, line: line)
    }

    /// Opens a store with a configuration, which must contain an identifier.
    ///
    /// `home` and `notificationQueue` are ignored. A store that is already open stays unchanged.
    public func openStore(
        _ configuration: UbiquityConfiguration, file: StaticString = #fileID, line: UInt = #line
    ) -> UbiquitousKeyValueStore {
        guard let identifier = configuration.identifier, !identifier.isEmpty else {
            fatalError("A store of a test needs an identifier.", file: file, line: line)
        }
        do {
            return try device.change { try open(identifier, configuration, on: $0) }
        } catch { fatalError("\(error)", file: file, line: line) }
    }

    private func open(
        _ identifier: String, _ configuration: UbiquityConfiguration, on machine: TestMachine
    ) throws -> UbiquitousKeyValueStore {
        if let store = machine.program(of: name, store: identifier)?.store { return store }
        let program = try TestProgram(
            process: name, identifier: identifier, machine: machine, configuration: configuration)
        machine.device.add(program)
        guard let store = program.store else { preconditionFailure("It has just been opened.") }
        return store
    }

    /// Ends the process normally, after saving everything.
    public func quit() {
        device.change { machine in for program in machine.programs(of: name) { program.quit() } }
    }

    /// Ends the process abruptly, like ``TestDevice/kill()`` for all.
    public func kill() { device.change { $0.kill($0.programs(of: name)) } }

    /// The notifications posted by its stores, the oldest first.
    public var notifications: [TestNotification] {
        device.notifications.filter { $0.process == name }
    }
}
