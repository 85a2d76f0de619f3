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
            ).compactMap { try? AuditEntry($0) }
        }
    }

    /// The numbers have no gaps: only the oldest are ever removed.
    func trimAudit(toEntries max: Int) throws(StorageError) {
        try writing { db in
            try db.execute(
                sql: "DELETE FROM audit WHERE number <= (SELECT max(number) FROM audit) - ?",
                arguments: [max])
        }
    }

    /// Within the transaction that does what is recorded.
    func record(
        _ deed: AuditDeed, of device: DeviceName, now: Int64, by actor: AuditActor, _ db: Database
    ) throws {
        try record(
            deed, of: device.account, device.id, now: now, by: actor, db)
    }

    /// Within the transaction that does what is recorded.
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
    /// - Throws: ``StorageError/unreadable``.
    fileprivate init(_ row: Row) throws(StorageError) {
        let device = row.hasNull(atIndex: 6) ? nil : try row.device(6)
        guard let deed = AuditDeed(rawValue: try row.value(2)),
            let actor = AuditActor(word: try row.value(5), device: device)
        else { throw .unreadable }
        self.init(
            number: try row.value(0), time: try row.time(1), deed: deed,
            account: row.hasNull(atIndex: 3) ? nil : try row.account(3),
            device: row.hasNull(atIndex: 4) ? nil : try row.device(4), actor: actor)
    }
}
