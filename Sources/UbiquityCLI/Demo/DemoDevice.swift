// SPDX-License-Identifier: Apache-2.0

import Ubiquity
import UbiquityCore

/// A device of the demo: a home of its own, and an app that holds the store open.
struct DemoDevice {
    let name: String
    let home: String
    private(set) var store: UbiquitousKeyValueStore

    static let identifier = "DEMO.example.lumen"

    init(_ name: String, home: String) throws {
        self.name = name
        self.home = home
        store = try Self.open(home)
    }

    /// Ends the app.
    func close() { store.close() }

    /// Starts the app again.
    mutating func reopen() throws { store = try Self.open(home) }

    var isConnected: Bool { store.engineStatus.link.state == .connected }
    var pendingKeys: Int { store.engineStatus.pendingKeys.count }

    private static func open(_ home: String) throws -> UbiquitousKeyValueStore {
        var configuration = UbiquityConfiguration(identifier: identifier, home: home)
        configuration.logger = .program
        return try UbiquitousKeyValueStore(configuration: configuration)
    }
}
