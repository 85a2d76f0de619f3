// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The audit log. Whether an entry is added or counted in an existing one depends on the recent
/// entries of the same action and account, so two nodes must not decide at once: whoever records
/// holds the lock of the account's row, or that of the directory (``Directory``) for an entry
/// without an account.
extension PostgresServerStorage {
    func auditEntries(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) throws(StorageError) -> [AuditEntry] {
        let statement = PostgresStatement(
            """
            SELECT \(AuditEntry.columns) FROM ubiquity.audit
            WHERE number < $1 AND ($3::text IS NULL OR deed = $3)
                AND ($4::text IS NULL OR account = $4)
            ORDER BY number DESC LIMIT $2
            """, .integer(number ?? .max), .integer(Int64(max)),
            .optional(filter.action?.rawValue), .optional(filter.account?.string))
        return try reading(statement) { $0.rows.compactMap { try? AuditEntry($0) } }
    }

    func record(_ entries: [AuditEntry]) throws(StorageError) {
        guard !entries.isEmpty else { return }
        let accounts = Set(entries.compactMap(\.event.account))
        try writing { transaction in
            // After a commit in doubt: an entry that counts twice is better than none.
            if accounts.count < Set(entries.map(\.event.account)).count {
                _ = try transaction.run([Directory.locking])
            }
            try lock(accounts, transaction)
            try PostgresAudit.record(entries, transaction)
        }
    }

    func recordChanges(ofLimits limits: [String: String], now: Int64) throws(StorageError) {
        try writing { transaction in
            let known = try transaction.run([
                Directory.locking,
                PostgresStatement("SELECT name, value FROM ubiquity.known_limit", []),
            ])[1].rows.reduce(into: [String: String]()) { $0[try $1.text(0)] = try $1.text(1) }
            let changed = limits.filter { known[$0.key] != $0.value }
            guard !changed.isEmpty else { return }
            _ = try transaction.run(
                """
                INSERT INTO ubiquity.known_limit (name, value)
                SELECT * FROM unnest($1::text[], $2::text[])
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """, .texts(changed.map(\.key)), .texts(changed.map(\.value)))
            let events = AuditEvent.changes(of: known, to: limits)
            try PostgresAudit.record(events.map { AuditEntry($0, at: now) }, transaction)
        }
    }

    func auditSurplus(by rule: AuditRule) throws(StorageError) -> [Int64] {
        try reading { transaction in
            let count = try transaction.run("SELECT count(*) FROM ubiquity.audit").rows.first
            guard try count?.integer(0) ?? 0 > rule.entriesMax else { return [] }
            let rows = try transaction.run("SELECT number, deed, account FROM ubiquity.audit").rows
            return rule.surplus(of: rows.compactMap { try? AuditRule.Line($0) })
        }
    }

    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError) {
        guard !numbers.isEmpty else { return }
        try writing { transaction in
            _ = try transaction.run(
                "DELETE FROM ubiquity.audit WHERE number = ANY($1)", .integers(numbers))
        }
    }
}

/// Entries on their way into the log, in two steps so that each can share a flight with others: the
/// recent entries are read under the lock, and then the new ones are written.
enum PostgresAudit {
    /// Records all in two flights.
    static func record(_ entries: [AuditEntry], _ transaction: PostgresTransaction) throws {
        guard !entries.isEmpty else { return }
        let kinds = Set(entries.map { Kind($0.event) })
        let recent = try transaction.run(kinds.map(\.reading))
        let known = Dictionary(uniqueKeysWithValues: zip(kinds, recent.map(Self.entries)))
        _ = try transaction.run(writing(entries, known))
    }

    /// Reads the recent entries of an event's kind.
    static func reading(_ event: AuditEvent) -> PostgresStatement { Kind(event).reading }

    /// Writes an event.
    /// - Parameter recent: The result of ``reading(_:)``; nil if there can be no earlier entry.
    static func writing(
        _ event: AuditEvent, at now: Int64, after recent: PostgresResult?
    ) -> [PostgresStatement] {
        writing([AuditEntry(event, at: now)], [Kind(event): recent.map(entries) ?? []])
    }

    /// The entries of one action and account, among which ``AuditRule`` looks for one that counts
    /// another.
    private struct Kind: Hashable {
        var action: AuditAction
        var account: AccountID?

        init(_ event: AuditEvent) { (action, account) = (event.action, event.account) }

        /// The newest first. `IS NOT DISTINCT FROM` would not use the index.
        var reading: PostgresStatement {
            let condition = account == nil ? "account IS NULL" : "account = $3"
            return PostgresStatement(
                """
                SELECT \(AuditEntry.columns) FROM ubiquity.audit WHERE deed = $1 AND \(condition)
                ORDER BY number DESC LIMIT $2
                """,
                [.text(action.rawValue), .integer(Int64(AuditRule.entriesPerAccountMax))]
                    + (account.map { [.text($0.string)] } ?? [])
            )
        }
    }

    private static func entries(_ result: PostgresResult) -> [AuditEntry] {
        result.rows.compactMap { try? AuditEntry($0) }
    }

    /// New entries have negative numbers until they are written, so that later ones of the same
    /// call are counted in them.
    private static func writing(
        _ entries: [AuditEntry], _ known: [Kind: [AuditEntry]]
    ) -> [PostgresStatement] {
        var known = known
        var written: [Int64: AuditEntry] = [:]
        for var entry in entries {
            let kind = Kind(entry.event)
            var recent = known[kind] ?? []
            if let sum = AuditRule.fold(entry, into: recent),
                let index = recent.firstIndex(where: { $0.number == sum.number })
            {
                recent[index] = sum
                written[sum.number] = sum
            } else {
                entry.number = -Int64(written.count + 1)
                recent.insert(entry, at: 0)
                written[entry.number] = entry
            }
            known[kind] = recent
        }
        return written.values.sorted { $0.number > $1.number }.map(statement)
    }

    private static func statement(_ entry: AuditEntry) -> PostgresStatement {
        let event = entry.event
        let values: [PostgresValue] = [
            .integer(entry.time), .text(event.action.rawValue), .optional(event.account?.string),
            .optional(event.device?.bits), .text(event.actor.word),
            .optional(event.actor.device?.bits),
            .integer(entry.last), .integer(Int64(entry.count)), .optional(event.detail),
        ]
        guard entry.number > 0 else {
            return PostgresStatement(
                """
                INSERT INTO ubiquity.audit (\(AuditEntry.contentColumns))
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                """, values
            )
        }
        return PostgresStatement(
            """
            UPDATE ubiquity.audit SET time = $1, deed = $2, account = $3, device = $4, actor = $5,
                actor_device = $6, last = $7, count = $8, detail = $9
            WHERE number = $10
            """, values + [.integer(entry.number)]
        )
    }
}
