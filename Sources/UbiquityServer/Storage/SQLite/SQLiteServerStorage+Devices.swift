// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage {
    /// The columns of a ``Device``.
    static let deviceColumns =
        "account, id, \(SQLiteText.read("title")), created, seen, stores, expires, clock_ahead, "
        + "clock_measured, version, \(limits)"
    /// The limits of the device's account.
    private static let limits = "(SELECT limits FROM account WHERE account.id = device.account)"

    func rights(
        of credentials: [SecretHash]
    ) throws(StorageError) -> [Result<DeviceRights?, StorageError>] {
        let generation = memory.withLock { $0.devices.generation }
        let found = try readingWithoutTransaction { db in
            let statement = try RawStatement(
                "SELECT \(Self.deviceColumns) FROM device WHERE credential = ?", db)
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

    func devices(of account: AccountID) throws(StorageError) -> [Device] {
        try reading { try Self.devices(of: account, $0) }
    }

    private static func devices(of account: AccountID, _ db: Database) throws -> [Device] {
        try Row.fetchAll(
            db,
            sql: """
                SELECT \(deviceColumns) FROM device
                WHERE account = ? ORDER BY created, id
                """, arguments: [account.string]
        ).compactMap { try? Device($0) }
    }

    func holdings(of store: StoreReference, key: Key?) throws(StorageError) -> StoreHoldings {
        try reading { db in
            var holdings = StoreHoldings(devices: try Self.devices(of: store.account, db))
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

    func rename(
        _ device: DeviceReference, displayName: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try writing { db in
            try checkActor(actor, of: device.account, db)
            try db.execute(
                sql: """
                    UPDATE device SET title = \(SQLiteText.bound) WHERE account = ? AND id = ?
                    """,
                arguments: [SQLiteText.bytes(displayName), device.account.string, device.id.bits])
            guard db.changesCount == 1 else { return false }
            try record(
                AuditEvent(.deviceRenamed, of: device.account, device.id, by: actor), at: now, db)
            return true
        }
    }

    func revoke(
        _ device: DeviceReference, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference> {
        let removed = try writing { db in
            try checkActor(actor, of: device.account, db)
            return try removeAll(endingWith: device, .deviceRevoked, now: now, by: actor, db)
        } committed: { _, names in
            memory.withLock { memory in names.forEach { memory.devices.remove($0) } }
        }
        return Set(removed)
    }

    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int {
        try writing { db in
            let names = try Row.fetchAll(
                db, sql: "SELECT account, id FROM device WHERE expires <= ?", arguments: [time]
            ).compactMap { try? DeviceReference(account: $0.account(0), id: $0.device(1)) }
            return try names.flatMap { name in
                try removeAll(
                    endingWith: name, .deviceRemoved, now: now, by: .housekeeping, db)
            }
        } committed: { _, names in
            memory.withLock { memory in names.forEach { memory.devices.remove($0) } }
        }.count
    }

    /// Removes a device, and what ends with it.
    /// - Returns: What was there.
    private func removeAll(
        endingWith device: DeviceReference, _ action: AuditAction, now: Int64,
        by actor: AuditActor, _ db: Database
    ) throws -> [DeviceReference] {
        let added = try Row.fetchAll(
            db, sql: "SELECT id, adder FROM device WHERE account = ? AND adder IS NOT NULL",
            arguments: [device.account.string])
        // What cannot be read must not keep the others.
        let adders = added.compactMap { row in try? (row.device(0), row.device(1)) }
        let ending = PairingRule.ending(
            with: [device.id], Dictionary(adders) { first, _ in first })
        return try ending.map { DeviceReference(account: device.account, id: $0) }
            .filter { try remove($0, action, now: now, by: actor, db) }
    }

    /// - Returns: Whether it was there.
    private func remove(
        _ device: DeviceReference, _ action: AuditAction, now: Int64, by actor: AuditActor,
        _ db: Database
    ) throws -> Bool {
        let arguments: StatementArguments = [device.account.string, device.id.bits]
        try db.execute(
            sql: "DELETE FROM device WHERE account = ? AND id = ?", arguments: arguments)
        guard db.changesCount == 1 else { return false }
        try removeCodes(madeBy: device, db)
        try db.execute(
            sql: """
                DELETE FROM passed
                WHERE store IN (SELECT id FROM store WHERE account = ?) AND device = ?
                """, arguments: arguments)
        try record(AuditEvent(action, of: device.account, device.id, by: actor), at: now, db)
        return true
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
        try writing { db in
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

    /// - Throws: ``StorageError/tooMany(_:)``.
    func insert(
        _ device: NewDevice, _ id: DeviceID = .random(), of account: AccountID, now: Int64,
        _ db: Database
    ) throws -> Device {
        let counts = try Row.fetchOne(
            db,
            sql: """
                SELECT count(*), count(adder) FROM device
                WHERE account = ? AND (expires IS NULL OR expires > ?)
                """, arguments: [account.string, now])
        try device.checkRoom(
            besides: counts?.count(0) ?? 0, added: counts?.count(1) ?? 0)
        try db.execute(
            sql: """
                INSERT INTO device
                    (account, id, title, credential, created, seen, stores, expires, adder)
                VALUES (?, ?, \(SQLiteText.bound), ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                account.string, id.bits, SQLiteText.bytes(device.displayName),
                device.credential.bytes, now, now, device.stores.map(StoreList.text),
                device.expiresMilliseconds, device.adder?.bits,
            ])
        try record(AuditEvent(.deviceSignedIn, of: account, id, by: .device(id)), at: now, db)
        return Device(device, DeviceReference(account: account, id: id), now: now)
    }
}

extension DeviceID {
    /// The form in SQLite.
    var bits: Int64 { Int64(bitPattern: rawValue) }
}
