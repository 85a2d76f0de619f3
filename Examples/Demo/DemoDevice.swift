// SPDX-License-Identifier: Apache-2.0

import Logging
import Ubiquity
import UbiquityCore

/// A device of the demo: a home folder of its own, and an app that keeps the store open.
struct DemoDevice {
    let name: String
    let home: String
    private(set) var store: UbiquitousKeyValueStore

    static let identifier = "DEMO.example.lumen"

    private let firstSync: UbiquityConfiguration.FirstSync

    init(
        _ name: String, home: String, firstSync: UbiquityConfiguration.FirstSync = .serverWins
    ) throws {
        self.name = name
        self.home = home
        self.firstSync = firstSync
        store = try Self.open(home, firstSync)
    }

    /// Ends the app.
    func close() { store.close() }

    /// Starts the app again.
    mutating func reopen() throws { store = try Self.open(home, firstSync) }

    var isConnected: Bool { store.engineStatus.link.state == .connected }
    var pendingKeys: Int { store.engineStatus.pendingKeys.count }

    private static func open(
        _ home: String, _ firstSync: UbiquityConfiguration.FirstSync
    ) throws -> UbiquitousKeyValueStore {
        var configuration = UbiquityConfiguration(identifier: identifier, home: home)
        configuration.firstSync = firstSync
        configuration.logger.logLevel = .error
        return try UbiquitousKeyValueStore(configuration: configuration)
    }
}
