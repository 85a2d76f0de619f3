// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    private static let devicesByCredential = SQLiteTransaction.sql(
        "SELECT \(Device.columns) FROM ubiquity.device WHERE credential = $1")

    func rights(
        of credentials: [SecretHash]
    ) throws(StorageError) -> [Result<DeviceRights?, StorageError>] {
        let generation = memory.withLock { $0.devices.generation }
        let found = try readingWithoutTransaction { db in
            let statement = try RawStatement(Self.devicesByCredential, db)
            return credentials.map { credential in
                statement.bind(credential.bytes, at: 1)
                var rights: DeviceRights?
                // What one cannot read must not keep the others out.
                do { try statement.run { rights = try Device($0).rights } } catch {
                    return Result<DeviceRights?, StorageError>.failure(StorageError(error))
                }
                return .success(rights)
            }
        }
        memory.withLock { memory in
            // Not if one may have been removed meanwhile.
            guard memory.devices.generation == generation else { return }
            for case .success(let rights?) in found { memory.remember(rights.reference) }
        }
        return found
    }

    func holdings(of store: StoreReference, key: Key?) throws(StorageError) -> StoreHoldings {
        try reading { db in
            let devices = try SQLiteTransaction(db: db).run([.devices(of: store.account)])[0].rows
            var holdings = StoreHoldings(devices: devices.compactMap { try? Device($0) })
            guard let found = try SQLiteStore.fetch(store, db), let id = found.id else {
                return holdings
            }
            holdings.lineage = found.state.lineage
            holdings.entries = try SQLiteRecord.fetchEntries(of: id, key: key, db)
            let passed = try RawStatement(
                "SELECT device, revision FROM passed WHERE store = ?", db)
            passed.bind(id, at: 1)
            try passed.run { holdings.passed[try $0.device(0)] = try $0.revision(1) }
            return holdings
        }
    }

    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int {
        try writing { transaction -> [DeviceReference] in
            let expired = try transaction.run([.devices(expiredBy: time, max: .max)])[0].rows
            let devices = expired.compactMap { try? DeviceReference($0) }
            return try Dictionary(grouping: devices, by: \.account).flatMap { account, devices in
                try Self.remove(
                    devices, of: account, .deviceRemoved, now: now, by: .housekeeping, transaction)
            }
        } news: {
            $0.map { .revoked($0) }
        }.count
    }

    func signedIn(
        among devices: Set<DeviceReference>
    ) throws(StorageError) -> Set<DeviceReference> {
        try reading { db in try devices.filter { try Self.isSignedIn($0, db) } }
    }

    static func isSignedIn(_ device: DeviceReference, _ db: Database) throws -> Bool {
        let statement = try RawStatement(
            "SELECT 1 FROM device WHERE account = ? AND id = ?", db)
        statement.bind(text: device.account.string, at: 1)
        statement.bind(device.id.rawValue, at: 2)
        var isSignedIn = false
        try statement.run { _ in isSignedIn = true }
        return isSignedIn
    }

    func note(_ lastSeen: LastSeenUpdate) throws(StorageError) {
        try transact { db in
            for (device, time) in lastSeen.seenMilliseconds {
                try set("seen = max(seen, ?)", [time], of: device, db)
            }
            // Of this history, since nobody replaces the file of an open database.
            for (deviceStore, position) in lastSeen.passed {
                try note(deviceStore, position.revision, db)
            }
            for (device, clock) in lastSeen.clocks {
                try set(
                    "clock_ahead = ?, clock_measured = ?",
                    [clock.aheadMilliseconds, clock.milliseconds], of: device, db)
            }
            for (device, version) in lastSeen.versions {
                try set("version = ?", [version], of: device, db)
            }
        }
    }

    private func set(
        _ columns: String, _ values: StatementArguments, of device: DeviceReference, _ db: Database
    ) throws {
        let statement = try db.cachedStatement(
            sql: "UPDATE device SET \(columns) WHERE account = ? AND id = ?")
        try statement.execute(arguments: values + [device.account.string, device.id.bits])
    }

    /// Not the maximum of both: a device restored from its own backup has less.
    private func note(_ deviceStore: LastSeenUpdate.DeviceStore, _ revision: Int64, _ db: Database)
        throws
    {
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO passed (store, device, revision)
                SELECT store.id, device.id, ? FROM store JOIN device USING (account)
                WHERE account = ? AND identifier = ? AND device.id = ?
                """)
        try statement.execute(arguments: [
            revision, deviceStore.store.account.string, deviceStore.store.identifier.string,
            deviceStore.device.id.bits,
        ])
    }
}
