// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The audit log. Whether an entry is added or counted in an existing one depends on the recent
/// entries of the same action and account, so two nodes must not decide at once: whoever records
/// holds the lock of the account's row, or that of the directory for an entry without an account.
extension SQLStorage {
    func auditEntries(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) throws(StorageError) -> [AuditEntry] {
        let statement = SQLStatement(
            """
            SELECT \(AuditEntry.columns) FROM ubiquity.audit
            WHERE number < $1 AND (CAST($3 AS text) IS NULL OR deed = $3)
                AND (CAST($4 AS text) IS NULL OR account = $4)
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
            let needsDirectory = entries.contains { $0.event.account == nil }
            let directory = needsDirectory ? [Directory.locking] : []
            try transaction.run(directory + accounts.sorted().map { SQLStatement.locking($0) })
            try AuditWriting.record(entries, transaction)
        }
    }

    func recordChanges(ofLimits limits: [String: String], now: Int64) throws(StorageError) {
        try writing { transaction in
            let known = try transaction.run([
                Directory.locking,
                SQLStatement("SELECT name, value FROM ubiquity.known_limit", []),
            ])[1].rows.reduce(into: [String: String]()) { $0[try $1.text(0)] = try $1.text(1) }
            let changed = limits.filter { known[$0.key] != $0.value }
            guard !changed.isEmpty else { return }
            try transaction.run(
                changed.sorted { $0.key < $1.key }.map { name, value in
                    SQLStatement(
                        """
                        INSERT INTO ubiquity.known_limit (name, value) VALUES ($1, $2)
                        ON CONFLICT (name) DO UPDATE SET value = excluded.value
                        """, .text(name), .text(value))
                })
            let events = AuditEvent.changes(of: known, to: limits)
            try AuditWriting.record(events.map { AuditEntry($0, at: now) }, transaction)
        }
    }

    func auditSurplus(by rule: AuditRule) throws(StorageError) -> [Int64] {
        let count = try reading(SQLStatement("SELECT count(*) FROM ubiquity.audit")) {
            try $0.rows.first?.count(0) ?? 0
        }
        guard count > rule.entriesMax else { return [] }
        let lines = SQLStatement("SELECT number, deed, account FROM ubiquity.audit")
        return try reading(lines) { answer in
            rule.surplus(of: answer.rows.compactMap { try? AuditRule.Line($0) })
        }
    }
}

/// Entries on their way into the log, in two steps so that each can share a flight with others: the
/// recent entries are read under the lock, and then the new ones are written.
enum AuditWriting {
    /// Records all in two flights.
    static func record(_ entries: [AuditEntry], _ transaction: some SQLTransaction) throws {
        guard !entries.isEmpty else { return }
        let kinds = Set(entries.map { Kind($0.event) })
        let recent = try transaction.run(kinds.map(\.reading))
        let known = Dictionary(uniqueKeysWithValues: zip(kinds, recent.map { Self.entries($0) }))
        _ = try transaction.run(writing(entries, known))
    }

    /// Reads the recent entries of an event's kind.
    static func reading(_ event: AuditEvent) -> SQLStatement { Kind(event).reading }

    /// Writes an event.
    /// - Parameter recent: The answer to ``reading(_:)``.
    static func writing(
        _ event: AuditEvent, at now: Int64, after recent: some SQLResult
    ) -> [SQLStatement] {
        writing([AuditEntry(event, at: now)], [Kind(event): entries(recent)])
    }

    /// Writes an event of which there can be no earlier entry.
    static func first(_ event: AuditEvent, at now: Int64) -> [SQLStatement] {
        writing([AuditEntry(event, at: now)], [:])
    }

    /// The entries of one action and account, among which ``AuditRule`` looks for one that counts
    /// another.
    private struct Kind: Hashable {
        var action: AuditAction
        var account: AccountID?

        init(_ event: AuditEvent) { (action, account) = (event.action, event.account) }

        /// The newest first. `IS NOT DISTINCT FROM` would not use the index.
        var reading: SQLStatement {
            let condition = account == nil ? "account IS NULL" : "account = $3"
            return SQLStatement(
                """
                SELECT \(AuditEntry.columns) FROM ubiquity.audit WHERE deed = $1 AND \(condition)
                ORDER BY number DESC LIMIT $2
                """,
                [.text(action.rawValue), .integer(Int64(AuditRule.entriesPerAccountMax))]
                    + (account.map { [.text($0.string)] } ?? [])
            )
        }
    }

    private static func entries(_ answer: some SQLResult) -> [AuditEntry] {
        answer.rows.compactMap { try? AuditEntry($0) }
    }

    /// New entries have negative numbers until they are written, so that later ones of the same
    /// call are counted in them.
    private static func writing(
        _ entries: [AuditEntry], _ known: [Kind: [AuditEntry]]
    ) -> [SQLStatement] {
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

    private static func statement(_ entry: AuditEntry) -> SQLStatement {
        let event = entry.event
        let values: [SQLValue] = [
            .integer(entry.time), .text(event.action.rawValue), .optional(event.account?.string),
            .optional(event.device?.bits), .text(event.actor.word),
            .optional(event.actor.device?.bits),
            .integer(entry.last), .integer(Int64(entry.count)), .optional(event.detail),
        ]
        guard entry.number > 0 else {
            return SQLStatement(
                """
                INSERT INTO ubiquity.audit (\(AuditEntry.contentColumns))
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                """, values
            )
        }
        return SQLStatement(
            """
            UPDATE ubiquity.audit SET time = $1, deed = $2, account = $3, device = $4, actor = $5,
                actor_device = $6, last = $7, count = $8, detail = $9
            WHERE number = $10
            """, values + [.integer(entry.number)]
        )
    }
}
