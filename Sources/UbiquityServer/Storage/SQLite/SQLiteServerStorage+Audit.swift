// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

extension SQLiteServerStorage {
    func auditEntries(
        before number: Int64?, max: Int
    ) throws(StorageError) -> [AuditEntry] {
        try reading { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT number, time, deed, account, device, actor, actor_device FROM audit
                    WHERE number < ? ORDER BY number DESC LIMIT ?
                    """, arguments: [number ?? .max, max]
            ).compactMap(AuditEntry.init)
        }
    }

    /// The numbers have no gaps, because only the oldest are ever removed.
    func trimAudit(toEntries max: Int) throws(StorageError) {
        try writing { db in
            try db.execute(
                sql: "DELETE FROM audit WHERE number <= (SELECT max(number) FROM audit) - ?",
                arguments: [max])
        }
    }

    /// Must be called within the transaction of the recorded action.
    func record(
        _ deed: AuditDeed, of device: DeviceName, now: Int64, by actor: AuditActor, _ db: Database
    ) throws {
        try record(
            deed, of: device.account, device.id, now: now, by: actor, db)
    }

    /// Must be called within the transaction of the recorded action.
    func record(
        _ deed: AuditDeed, of account: AccountID? = nil, _ device: DeviceID? = nil, now: Int64,
        by actor: AuditActor, _ db: Database
    ) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO audit (time, deed, account, device, actor, actor_device)
                VALUES (?, ?, ?, ?, ?, ?)
                """)
        try statement.execute(arguments: [
            now, deed.rawValue, account?.string, device?.bits, actor.word, actor.device?.bits,
        ])
    }
}

extension AuditEntry {
    /// Fails for a row that this program would not have written.
    fileprivate init?(_ row: Row) {
        let device = (row[6] as Int64?).map { DeviceID(bits: $0) }
        guard let deed = AuditDeed(rawValue: row[2]),
            let actor = AuditActor(word: row[5], device: device)
        else { return nil }
        self.init(
            number: row[0], time: row[1], deed: deed,
            account: (row[3] as String?).map { AccountID($0) },
            device: (row[4] as Int64?).map { DeviceID(bits: $0) }, actor: actor)
    }
}
