// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

extension SQLiteServerStorage {
    func auditEntries(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) throws(StorageError) -> [AuditEntry] {
        try reading { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT \(AuditEntry.columns) FROM audit
                    WHERE number < ?1 AND (?2 IS NULL OR deed = ?2) AND (?3 IS NULL OR account = ?3)
                    ORDER BY number DESC LIMIT ?4
                    """,
                arguments: [
                    number ?? .max, filter.action?.rawValue, filter.account?.string, max,
                ]
            ).compactMap { try? AuditEntry($0) }
        }
    }

    func record(_ entries: [AuditEntry]) throws(StorageError) {
        guard !entries.isEmpty else { return }
        try writing { db in
            for entry in entries { try record(entry, db) }
        }
    }

    func recordChanges(ofLimits limits: [String: String], now: Int64) throws(StorageError) {
        try writing { db in
            let known = try Row.fetchAll(db, sql: "SELECT name, value FROM known_limit")
                .reduce(into: [String: String]()) { $0[try $1.value(0)] = try $1.value(1) }
            for (name, value) in limits where known[name] != value {
                try db.execute(
                    sql: "INSERT OR REPLACE INTO known_limit (name, value) VALUES (?, ?)",
                    arguments: [name, value])
            }
            for event in AuditEvent.changes(of: known, to: limits) {
                try record(event, at: now, db)
            }
        }
    }

    func auditSurplus(by rule: AuditRule) throws(StorageError) -> [Int64] {
        try reading { db in
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM audit") ?? 0
            guard count > rule.entriesMax else { return [] }
            let rows = try Row.fetchCursor(db, sql: "SELECT number, deed, account FROM audit")
            var lines: [AuditRule.Line] = []
            while let row = try rows.next() {
                guard let line = try? AuditRule.Line(row) else { continue }
                lines.append(line)
            }
            return rule.surplus(of: lines)
        }
    }

    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError) {
        try writing { db in
            let statement = try db.cachedStatement(sql: "DELETE FROM audit WHERE number = ?")
            for number in numbers { try statement.execute(arguments: [number]) }
        }
    }

    /// Must be called within the transaction of the recorded action.
    func record(_ event: AuditEvent, at now: Int64, _ db: Database) throws {
        try record(AuditEntry(event, at: now), db)
    }

    private func record(_ entry: AuditEntry, _ db: Database) throws {
        let event = entry.event
        let recent = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT \(AuditEntry.columns) FROM audit WHERE deed = ? AND account IS ?
                    ORDER BY number DESC LIMIT ?
                    """),
            arguments: [
                event.action.rawValue, event.account?.string, AuditRule.entriesPerAccountMax,
            ]
        ).compactMap { try? AuditEntry($0) }
        let sum = AuditRule.fold(entry, into: recent)
        let statement = try db.cachedStatement(
            sql: """
                INSERT OR REPLACE INTO audit (\(AuditEntry.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        let new = sum ?? entry
        try statement.execute(arguments: [
            sum?.number, new.time, event.action.rawValue, event.account?.string,
            event.device?.bits, event.actor.word, event.actor.device?.bits, new.last, new.count,
            event.detail,
        ])
    }
}
