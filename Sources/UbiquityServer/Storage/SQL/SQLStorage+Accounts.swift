// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension SQLStorage {
    func operatorHash() throws(StorageError) -> SecretHash? {
        let statement = SQLStatement(
            "SELECT hash FROM ubiquity.secret WHERE name = 'operator'")
        return try reading(statement) { result in
            try result.rows.first.map { SecretHash(bytes: try $0.bytes(0)) }
        }
    }

    func setOperatorHash(_ hash: SecretHash, recordedAt now: Int64?) throws(StorageError) {
        try writing { transaction in
            _ = try transaction.run([
                Directory.locking,
                SQLStatement(
                    """
                    INSERT INTO ubiquity.secret (name, hash) VALUES ('operator', $1)
                    ON CONFLICT (name) DO UPDATE SET hash = excluded.hash
                    """, [.bytes(hash.bytes)]),
            ])
            let entries = now.map { [AuditEntry(.credentialReplacement, at: $0)] } ?? []
            try AuditWriting.record(entries, transaction)
        }
    }

    func createAccount(
        _ account: Account, accountsMax: Int, by actor: AuditActor
    ) throws(StorageError) {
        try writing { transaction in
            let found = try transaction.run([
                Directory.locking, .account(named: account.name), .account(account.id),
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
        _ account: Account, accountsMax: Int, by actor: AuditActor,
        _ directory: DatabaseTransaction.StatementResult
    ) throws(StorageError) -> [SQLStatement] {
        guard let count = directory.rows.first else { throw .unreadable }
        guard try count.count(0) < accountsMax else { throw .tooMany("accounts") }
        let event = AuditEvent(.accountCreated, of: account.id, by: actor)
        return [
            SQLStatement(
                "INSERT INTO ubiquity.account (id, name, created) VALUES ($1, $2, $3)",
                [
                    .text(account.id.string), .text(account.name.string),
                    .integer(account.createdMilliseconds),
                ]
            ), Directory.adding(1),
        ] + AuditWriting.first(event, at: account.createdMilliseconds)
    }

    func account(named name: AccountName) throws(StorageError) -> Account? {
        try reading(.account(named: name)) { try $0.rows.first.map(Account.init) }
    }

    func account(_ id: AccountID) throws(StorageError) -> Account? {
        try reading(.account(id)) { try $0.rows.first.map(Account.init) }
    }

    func accounts(
        after name: AccountName?, containing part: String?, max: Int
    ) throws(StorageError) -> [Account] {
        let statement = SQLStatement(
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
                Directory.locking, .locking(account), .account(named: name),
                AuditWriting.reading(event),
            ])
            guard let old = try found[1].rows.first.map(Account.init) else {
                throw StorageError.noSuchAccount
            }
            // Also if an earlier attempt did it.
            guard old.name != name else { return }
            guard found[2].rows.isEmpty else { throw StorageError.accountExists }
            let renaming = SQLStatement(
                "UPDATE ubiquity.account SET name = $1 WHERE id = $2",
                [.text(name.string), .text(account.string)]
            )
            try transaction.run(
                [renaming] + AuditWriting.writing(event, at: now, after: found[3]))
        }
    }

    func limit(
        _ account: AccountID, to limits: AccountLimits, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        let event = AuditEvent(limits, of: account, by: actor)
        try writing { transaction in
            let found = try transaction.run([
                .locking(account), AuditWriting.reading(event),
            ])
            guard let old = try found[0].rows.first.map(Account.init) else {
                throw StorageError.noSuchAccount
            }
            // Also if an earlier attempt did it.
            guard old.limits != limits else { return }
            let limiting = SQLStatement(
                "UPDATE ubiquity.account SET limits = $1 WHERE id = $2",
                [.optional(limits.text), .text(account.string)])
            try transaction.run(
                [limiting] + AuditWriting.writing(event, at: now, after: found[1]))
        } news: { _ in
            [.accountChanged(account)]
        }
    }

    /// Locks the directory, the account, its stores and its devices, so that no push, sign-in or
    /// chore of the account is committed afterwards.
    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.accountErased, of: account, by: actor)
        let owner = SQLValue.text(account.string)
        return try doing(.accountChanged(account)) { transaction in
            let found = try transaction.run([
                Directory.locking, .locking(account), .lockingStores(of: account),
                SQLStatement(
                    "SELECT 1 FROM ubiquity.device WHERE account = $1 ORDER BY id FOR UPDATE", owner
                ), AuditWriting.reading(event),
            ])
            guard !found[1].rows.isEmpty else { return false }
            try checkActor(actor, of: account, transaction)
            var statements = DatabaseTransaction.listingErased(account)
            for table in ["store", "device", "code", "sign_in_request", "identity", "handover"] {
                statements.append(
                    SQLStatement("DELETE FROM ubiquity.\(table) WHERE account = $1", owner))
            }
            statements.append(SQLStatement("DELETE FROM ubiquity.account WHERE id = $1", owner))
            statements.append(Directory.adding(-1))
            try transaction.run(
                statements + AuditWriting.writing(event, at: now, after: found[4]))
            return true
        }
    }
}

extension SQLStatement {
    static func account(named name: AccountName) -> SQLStatement {
        SQLStatement(
            "SELECT \(Account.columns) FROM ubiquity.account WHERE name = $1",
            [.text(name.string)])
    }

    static func account(_ id: AccountID) -> SQLStatement {
        SQLStatement(
            "SELECT \(Account.columns) FROM ubiquity.account WHERE id = $1",
            [.text(id.string)])
    }

    /// Gives the account, and nothing if it does not exist.
    static func locking(_ id: AccountID) -> SQLStatement {
        SQLStatement(
            "SELECT \(Account.columns) FROM ubiquity.account WHERE id = $1 FOR UPDATE",
            [.text(id.string)]
        )
    }

    static func lockingStores(of account: AccountID) -> SQLStatement {
        SQLStatement(
            """
            SELECT identifier FROM ubiquity.store WHERE account = $1
            ORDER BY account, identifier FOR UPDATE
            """, [.text(account.string)]
        )
    }
}
