// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

extension SQLiteServerStorage {
    private static let columns = "account, id, title, created, seen"

    func device(credential: SecretHash) throws(StorageError) -> Device? {
        try reading { db in
            let statement = try db.cachedStatement(
                sql: """
                    SELECT \(Self.columns) FROM device
                    WHERE credential = ? AND revoked IS NULL
                    """)
            return try Row.fetchOne(statement, arguments: [credential.bytes]).map(Device.init)
        }
    }

    func devices(of account: AccountID) throws(StorageError) -> [Device] {
        try reading { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT \(Self.columns) FROM device
                    WHERE account = ? AND revoked IS NULL ORDER BY created, id
                    """, arguments: [account.string]
            ).map(Device.init)
        }
    }

    func revoke(_ device: DeviceName, now: Int64) throws(StorageError) -> Bool {
        try writing { db in
            try db.execute(
                sql: """
                    UPDATE device SET revoked = ? WHERE account = ? AND id = ? AND revoked IS NULL
                    """, arguments: [now, device.account.string, device.id.bits])
            return db.changesCount == 1
        }
    }

    func live(among devices: Set<DeviceName>) throws(StorageError) -> Set<DeviceName> {
        try reading { db in
            let statement = try db.cachedStatement(
                sql: "SELECT 1 FROM device WHERE account = ? AND id = ? AND revoked IS NULL")
            return try devices.filter { device in
                let arguments: StatementArguments = [device.account.string, device.id.bits]
                return try Bool.fetchOne(statement, arguments: arguments) ?? false
            }
        }
    }

    func note(_ sightings: Sightings) throws(StorageError) {
        try writing { db in
            for (device, time) in sightings.seen {
                let statement = try db.cachedStatement(
                    sql: "UPDATE device SET seen = max(seen, ?) WHERE account = ? AND id = ?")
                try statement.execute(
                    arguments: [time, device.account.string, device.id.bits])
            }
            for (passage, revision) in sightings.passed { try note(passage, revision, db) }
        }
    }

    /// Not the maximum of both: a device restored from its own older copy has passed less.
    private func note(_ passage: Sightings.Passage, _ revision: Int64, _ db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO passed (store, device, revision)
                SELECT id, ?, ? FROM store WHERE account = ? AND identifier = ?
                """)
        try statement.execute(arguments: [
            passage.device.id.bits, revision, passage.store.account.string,
            passage.store.identifier.string,
        ])
    }

    /// - Throws: ``StorageError/tooMany(_:)``.
    func insert(
        _ device: NewDevice, of account: AccountID, now: Int64, _ db: Database
    ) throws -> Device {
        let count = try Int.fetchOne(
            db, sql: "SELECT count(*) FROM device WHERE account = ? AND revoked IS NULL",
            arguments: [account.string])
        guard count ?? 0 < device.devicesPerAccountMax else {
            throw StorageError.tooMany("devices in this account")
        }
        let id = DeviceID.random()
        try db.execute(
            sql: """
                INSERT INTO device (account, id, title, credential, created, seen)
                VALUES (?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                account.string, id.bits, device.title, device.credential.bytes, now, now,
            ])
        return Device(
            name: DeviceName(account: account, id: id), title: device.title, created: now,
            seen: now)
    }
}

extension DeviceID {
    /// As SQLite has it.
    fileprivate var bits: Int64 { Int64(bitPattern: rawValue) }
}

extension Device {
    fileprivate init(_ row: Row) {
        let id = DeviceID(rawValue: UInt64(bitPattern: row[1]))
        self.init(
            name: DeviceName(account: AccountID(row[0]), id: id), title: row[2],
            created: row[3], seen: row[4])
    }
}
