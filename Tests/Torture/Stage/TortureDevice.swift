// SPDX-License-Identifier: Apache-2.0

import Logging
import Ubiquity
import UbiquityCore
import UbiquitySimulation

/// One person's machine: a home folder, and a proxy of its own on the way to the server.
struct TortureDevice: Sendable {
    static let store = "TEAM.example.torture"

    let number: Int
    let account: Int
    let home: String
    let proxy: Proxy
    /// What its processes have in their environment: a wrong clock, perhaps.
    let environment: [String: String]

    /// A device is signed in to one account for good.
    var disk: DiskName { DiskName(device: number, folder: "1", store: 0) }

    /// What the file has besides the counter, read without the app's process.
    func readDisk() throws -> [Key: PropertyListValue] {
        let path = try DeviceHome(path: home).storePath(for: Self.store, folder: disk.folder)
        let storage = try SQLiteStorage(path: path)
        defer { storage.close() }
        return try storage.load().entries.reduce(into: [:]) { values, entry in
            if entry.key.isPart { return }
            let record = entry.pending?.record ?? entry.confirmed
            values[entry.key] = record?.content.value
        }
    }

    /// Signs in, and makes the first sync: before it, the server's values would replace what apps
    /// write, by the contract.
    func join(by code: String) async throws {
        try await UbiquityAccount.signIn(
            server: proxy.url, code: code, deviceName: "device \(number)", home: home)
        var configuration = UbiquityConfiguration(identifier: Self.store, home: home)
        configuration.logger = Logger(label: "torture") { _ in SwiftLogNoOpLogHandler() }
        let store = try UbiquitousKeyValueStore(configuration: configuration)
        defer { store.close() }
        try await store.synchronizeNow()
        try await store.initialSync()
    }
}
