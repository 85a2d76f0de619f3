// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension SQLStorage {
    func devices(of account: AccountID) throws(StorageError) -> [Device] {
        try reading(.devices(of: account)) { $0.rows.compactMap { try? Device($0) } }
    }

    func rename(
        _ device: DeviceReference, displayName: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.deviceRenamed, of: device.account, device.id, by: actor)
        return try writing { transaction in
            try transaction.run([.locking(device.account)])
            try checkActor(actor, of: device.account, transaction)
            let found = try transaction.run([
                SQLStatement(
                    "UPDATE ubiquity.device SET title = $3 WHERE account = $1 AND id = $2",
                    device.values + [.bytes(Data(displayName.utf8))]
                ), AuditWriting.reading(event),
            ])
            guard found[0].changes == 1 else { return false }
            // After a commit in doubt the log may count it twice.
            try transaction.run(AuditWriting.writing(event, at: now, after: found[1]))
            return true
        }
    }

    func revoke(
        _ device: DeviceReference, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference> {
        try remove([device], of: device.account, .deviceRevoked, now: now, by: actor)
    }

    /// Removes devices of an account, and what ends with them.
    /// - Returns: Those that were there.
    func remove(
        _ devices: [DeviceReference], of account: AccountID, _ action: AuditAction, now: Int64,
        by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference> {
        // Those that some attempt found. What the last attempt does not find was removed by an
        // earlier one, whose commit was in doubt.
        var there: Set<DeviceReference> = []
        try writing { transaction in
            try transaction.run([.locking(account)])
            // An earlier attempt, whose commit is in doubt, may have signed out the actor itself.
            if !transaction.mayBeRepeated || !devices.contains(where: { $0.id == actor.device }) {
                try checkActor(actor, of: account, transaction)
            }
            let removed = try Self.remove(
                devices, of: account, action, now: now, by: actor, transaction)
            there = transaction.mayBeRepeated ? there.union(removed) : Set(removed)
        } news: { _ in
            there.map { .revoked($0) }
        }
        return there
    }

    /// Call with the account's lock. Locks its stores, so that no push of the devices is committed
    /// afterwards.
    static func remove(
        _ devices: [DeviceReference], of account: AccountID, _ action: AuditAction, now: Int64,
        by actor: AuditActor, _ transaction: DatabaseTransaction
    ) throws -> [DeviceReference] {
        let added = try transaction.run(
            "SELECT id, adder FROM ubiquity.device WHERE account = $1 AND adder IS NOT NULL",
            .text(account.string)
        ).rows
        // What cannot be read must not keep the others.
        let adders = added.compactMap { row in try? (row.device(0), row.device(1)) }
        let ending = PairingRule.ending(
            with: Set(devices.map(\.id)), Dictionary(adders) { first, _ in first }
        ).sorted { Int64(bitPattern: $0.rawValue) < Int64(bitPattern: $1.rawValue) }
            .map { DeviceReference(account: account, id: $0) }
        // In the order of the numbers in the table, in which others lock them too.
        var statements = [SQLStatement.lockingStores(of: account)]
        for device in ending {
            statements.append(
                SQLStatement(
                    "DELETE FROM ubiquity.device WHERE account = $1 AND id = $2", device.values))
        }
        for device in ending {
            statements.append(DatabaseTransaction.forgettingProgress(of: device))
            statements += removingCodes(madeBy: device)
        }
        let found = try transaction.run(statements)
        let removed = zip(ending, found.dropFirst()).filter { $0.1.changes == 1 }.map(\.0)
        try AuditWriting.record(
            removed.map { device in
                AuditEntry(AuditEvent(action, of: account, device.id, by: actor), at: now)
            }, transaction)
        return removed
    }
}

extension Device {
    static let columns = """
        account, id, title, created, seen, stores, expires, clock_ahead, clock_measured, version,
        (SELECT limits FROM ubiquity.account a WHERE a.id = device.account),
        (SELECT \(SealingState.generationColumn) FROM ubiquity.account a
            WHERE a.id = device.account),
        (SELECT \(SealingState.announcedCheckColumn) FROM ubiquity.account a
            WHERE a.id = device.account)
        """
}

extension SQLStatement {
    static func device(credential: SecretHash) -> SQLStatement {
        SQLStatement(
            "SELECT \(Device.columns) FROM ubiquity.device WHERE credential = $1",
            .bytes(credential.bytes))
    }

    static func devices(of account: AccountID) -> SQLStatement {
        SQLStatement(
            """
            SELECT \(Device.columns) FROM ubiquity.device WHERE account = $1 ORDER BY created, id
            """, .text(account.string))
    }

    /// Gives their references.
    static func devices(expiredBy time: Int64, max: Int) -> SQLStatement {
        SQLStatement(
            """
            SELECT account, id FROM ubiquity.device WHERE expires <= $1
            ORDER BY account, id LIMIT $2
            """, .integer(time), .integer(Int64(max)))
    }
}

extension DeviceReference {
    /// - Parameter row: Begins with the account and the ID.
    init(_ row: some ColumnReading) throws(StorageError) {
        self.init(account: try row.account(0), id: try row.device(1))
    }

    /// The key of its row.
    var values: [SQLValue] { [.text(account.string), .integer(id.bits)] }
}

extension DeviceID {
    /// The form in a database.
    var bits: Int64 { Int64(bitPattern: rawValue) }
}
