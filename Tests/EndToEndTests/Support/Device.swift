// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Logging
internal import ProcessHarness
internal import Ubiquity
internal import UbiquityCore

/// A signed-in device with an app that holds the store open, in the tests' process.
struct Device: Sendable {
    let home: String
    let store: UbiquitousKeyValueStore

    static let identifier = "TEAM.example.notes"

    init(home: String, configure: (inout UbiquityConfiguration) -> Void = { _ in }) throws {
        self.home = home
        var configuration = UbiquityConfiguration(identifier: Self.identifier, home: home)
        configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        configure(&configuration)
        store = try UbiquitousKeyValueStore(configuration: configuration)
    }

    /// The device's own.
    var credential: String? {
        get throws { try DeviceHome(path: home).load().signedIn?.credential }
    }

    var isSettled: Bool { store.engineStatus.pendingKeys.isEmpty }
    var isConnected: Bool { store.engineStatus.link.state == .connected }

    func integer(_ key: String) -> Int64? { (store.object(forKey: key) as? NSNumber)?.int64Value }

    /// The values that are texts, of one moment.
    var texts: [String: String] {
        store.dictionaryRepresentation.compactMapValues { $0 as? String }
    }

    /// Ends the app.
    func close() { store.close() }
}

extension ServerProcess {
    /// Options that let devices push as often as they like.
    static let manyPushes = ["--pushes-per-second", "1000000"]

    /// The home of a new device, which signs in as an app does, in this process. That is quicker than
    /// the program; after a restart of the server it is the program's, for this process may still have
    /// a connection to the server of before.
    /// - Parameters:
    ///   - isFirst: Whether the account is to be made.
    ///   - address: The address by which the device knows the server; nil for its own.
    @discardableResult
    func newHome(
        _ name: String, isFirst: Bool = false, account: String = "ada",
        through address: String? = nil
    ) async throws -> String {
        let home = stage.path("home-\(name)")
        let code = try await newCode(isFirst: isFirst, account: account)
        try await UbiquityAccount.signIn(
            server: address ?? url, code: code, deviceName: name, home: home)
        return home
    }
}

/// Signs a device in at a server that has no account.
func signIn(_ home: String, at server: String, as name: String = "ada") throws {
    let account = SignedInAccount(
        server: server, account: "1", accountName: name, device: "00000000000000ff",
        deviceName: name, credential: "ubd_secret", certificates: nil)
    try DeviceHome(path: home).update { $0.signIn(account) }
}

/// Waits until all have the same values, and nothing waits to be sent.
func agreement(
    _ devices: Device..., on what: (([Key: PropertyListValue]) -> Bool)? = nil
) async throws {
    try await until("the agreement of \(devices.count) devices") {
        let first = devices[0].store.values
        return devices.allSatisfy { $0.isSettled && $0.store.values == first }
            && (what?(first) ?? true)
    }
}
