// SPDX-License-Identifier: Apache-2.0

import Logging
import ProcessHarness
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
    /// The environment of its processes, perhaps with a wrong clock.
    let environment: [String: String]
    let door: DeviceDoor
    /// Of a clone; nil: it is none.
    private let originals: [TortureDevice]

    init(
        number: Int, account: Int, home: String, proxy: Proxy, environment: [String: String]
    ) {
        (self.number, self.account, self.home) = (number, account, home)
        (self.proxy, self.environment) = (proxy, environment)
        (door, originals) = (DeviceDoor(isOpen: true), [])
    }

    /// A device that is to become a clone: signed in as the other one is, by the same proxy.
    init(number: Int, home: String, cloneOf original: TortureDevice) {
        (self.number, self.home) = (number, home)
        (account, proxy) = (original.account, original.proxy)
        environment = original.environment
        (door, originals) = (DeviceDoor(isOpen: false), [original])
    }

    /// Nil: it is no clone.
    var original: TortureDevice? { originals.first }

    /// A device is signed in to one account for good.
    var disk: DiskReference { DiskReference(device: number, folder: "1", store: 0) }

    /// Reads the file without the app's process.
    func readDisk() throws -> [Key: PropertyListValue] {
        try Self.readFile(
            DeviceHome(path: home).storePath(for: Self.store, folder: disk.folder))
    }

    /// The writes that the server has refused, which the device has kept.
    func readRefused() throws -> [Record] {
        let storage = try SQLiteStorage(
            path: DeviceHome(path: home).storePath(for: Self.store, folder: disk.folder))
        defer { storage.close() }
        return try storage.refusedWrites().map(\.record)
    }

    static func readFile(_ path: String) throws -> [Key: PropertyListValue] {
        let storage = try SQLiteStorage(path: path)
        defer { storage.close() }
        return try storage.load().entries.reduce(into: [:]) { values, entry in
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
