// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The row that every node locks to add, rename or erase an account, or to register or remove an
/// app: names and numbers of the whole server are decided by one node at a time. It is locked before
/// the accounts' rows, and these before the stores'. It counts the accounts, because counting rows
/// takes a tenth of a second with a million of them.
enum Directory {
    /// Gives the number of accounts.
    static let locking = PostgresStatement(
        "SELECT accounts FROM ubiquity.directory FOR UPDATE", []
    )

    static func adding(_ accounts: Int64) -> PostgresStatement {
        PostgresStatement(
            "UPDATE ubiquity.directory SET accounts = accounts + $1", [.integer(accounts)])
    }
}

extension PostgresServerStorage {
    func operatorHash() throws(StorageError) -> SecretHash? {
        let statement = PostgresStatement(
            "SELECT hash FROM ubiquity.secret WHERE name = 'operator'")
        return try reading(statement) { result in
            try result.rows.first.map { SecretHash(bytes: try $0.bytes(0)) }
        }
    }

    func setOperatorHash(_ hash: SecretHash, recordedAt now: Int64?) throws(StorageError) {
        try writing { transaction in
            _ = try transaction.run([
                Directory.locking,
                PostgresStatement(
                    """
                    INSERT INTO ubiquity.secret (name, hash) VALUES ('operator', $1)
                    ON CONFLICT (name) DO UPDATE SET hash = excluded.hash
                    """, [.bytes(hash.bytes)]),
            ])
            let entries = now.map { [AuditEntry(.credentialReplacement, at: $0)] } ?? []
            try PostgresAudit.record(entries, transaction)
        }
    }

    func sharedFigures() throws(StorageError) -> SharedFigures? {
        let statement = PostgresStatement(
            """
            SELECT pg_database_size(current_database()), count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name ~ $1
            """, .text("^\(PostgresNews.sessionName(connections: "[0-9]{1,6}"))$"))
        return try reading(statement) { result in
            try result.rows.first.map { row in
                SharedFigures(bytes: try row.count(0), nodes: try row.count(1))
            }
        }
    }

    func createAccount(
        _ account: Account, accountsMax: Int, by actor: AuditActor
    ) throws(StorageError) {
        try writing { transaction in
            let found = try transaction.run([
                Directory.locking, Self.account(named: account.name), Self.account(account.id),
            ])
            if transaction.mayBeRepeated, !found[2].rows.isEmpty { return }
            guard found[1].rows.isEmpty else { throw StorageError.accountExists }
            try transaction.run(
                Self.inserting(account, accountsMax: accountsMax, by: actor, found[0]))
        }
    }

    /// - Parameter directory: The result of ``Directory/locking``.
    /// - Throws: ``StorageError/tooMany(_:)``.
    static func inserting(
        _ account: Account, accountsMax: Int, by actor: AuditActor, _ directory: PostgresResult
    ) throws(StorageError) -> [PostgresStatement] {
        guard let count = directory.rows.first else { throw .unreadable }
        guard try count.count(0) < accountsMax else { throw .tooMany("accounts") }
        let event = AuditEvent(.accountCreated, of: account.id, by: actor)
        return [
            PostgresStatement(
                "INSERT INTO ubiquity.account (id, name, created) VALUES ($1, $2, $3)",
                [
                    .text(account.id.string), .text(account.name.string),
                    .integer(account.createdMilliseconds),
                ]
            ), Directory.adding(1),
        ] + PostgresAudit.writing(event, at: account.createdMilliseconds, after: nil)
    }

    func account(named name: AccountName) throws(StorageError) -> Account? {
        try reading(Self.account(named: name)) { try $0.rows.first.map(Account.init) }
    }

    func account(_ id: AccountID) throws(StorageError) -> Account? {
        try reading(Self.account(id)) { try $0.rows.first.map(Account.init) }
    }

    func accounts(
        after name: AccountName?, containing part: String?, max: Int
    ) throws(StorageError) -> [Account] {
        let statement = PostgresStatement(
            """
            SELECT \(Account.columns) FROM ubiquity.account
            WHERE name > $1 AND strpos(name, $3) > 0 ORDER BY name LIMIT $2
            """, .text(name?.string ?? ""), .integer(Int64(max)), .text(part ?? ""))
        return try reading(statement) { $0.rows.compactMap { try? Account($0) } }
    }

    func rename(
        _ account: AccountID, to name: AccountName, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        let event = AuditEvent(.accountRenamed, of: account, by: actor)
        try writing { transaction in
            let found = try transaction.run([
                Directory.locking, Self.locking(account), Self.account(named: name),
                PostgresAudit.reading(event),
            ])
            guard let old = try found[1].rows.first.map(Account.init) else {
                throw StorageError.noSuchAccount
            }
            // Also if an earlier attempt did it.
            guard old.name != name else { return }
            guard found[2].rows.isEmpty else { throw StorageError.accountExists }
            let renaming = PostgresStatement(
                "UPDATE ubiquity.account SET name = $1 WHERE id = $2",
                [.text(name.string), .text(account.string)]
            )
            try transaction.run(
                [renaming] + PostgresAudit.writing(event, at: now, after: found[3]))
        }
    }

    func limit(
        _ account: AccountID, to limits: AccountLimits, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        let event = AuditEvent(limits, of: account, by: actor)
        try writing { transaction in
            let found = try transaction.run([
                Self.locking(account), PostgresAudit.reading(event),
            ])
            guard let old = try found[0].rows.first.map(Account.init) else {
                throw StorageError.noSuchAccount
            }
            // Also if an earlier attempt did it.
            guard old.limits != limits else { return }
            let limiting = PostgresStatement(
                "UPDATE ubiquity.account SET limits = $1 WHERE id = $2",
                [.optional(limits.text), .text(account.string)])
            try transaction.run(
                [limiting] + PostgresAudit.writing(event, at: now, after: found[1]))
        }
        announce([.accountChanged(account)])
    }

    // MARK: - Statements

    static func account(named name: AccountName) -> PostgresStatement {
        PostgresStatement(
            "SELECT \(Account.columns) FROM ubiquity.account WHERE name = $1",
            [.text(name.string)])
    }

    static func account(_ id: AccountID) -> PostgresStatement {
        PostgresStatement(
            "SELECT \(Account.columns) FROM ubiquity.account WHERE id = $1",
            [.text(id.string)])
    }

    /// Gives the account, and nothing if it does not exist.
    static func locking(_ id: AccountID) -> PostgresStatement {
        PostgresStatement(
            "SELECT \(Account.columns) FROM ubiquity.account WHERE id = $1 FOR UPDATE",
            [.text(id.string)]
        )
    }

    /// Locks those of the accounts that exist.
    func lock(_ accounts: Set<AccountID>, _ transaction: PostgresTransaction) throws {
        guard !accounts.isEmpty else { return }
        _ = try transaction.run(
            "SELECT 1 FROM ubiquity.account WHERE id = ANY($1) ORDER BY id FOR UPDATE",
            .texts(accounts.map(\.string)))
    }

    /// Gives the number and the identifier of each store.
    static func lockingStores(of account: AccountID) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT number, identifier FROM ubiquity.store WHERE account = $1
            ORDER BY account, identifier FOR UPDATE
            """, [.text(account.string)]
        )
    }
}
