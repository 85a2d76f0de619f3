// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Synchronization
internal import UbiquityCore

extension SQLiteServerStorage: ServerStorage {
    func operatorHash() throws(StorageError) -> SecretHash? {
        try reading { db in
            try Data.fetchOne(db, sql: "SELECT hash FROM secret WHERE name = 'operator'")
                .map(SecretHash.init(bytes:))
        }
    }

    func setOperatorHash(_ hash: SecretHash, recordedAt now: Int64?) throws(StorageError) {
        try writing { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO secret (name, hash) VALUES ('operator', ?)",
                arguments: [hash.bytes])
            if let now { try record(.credentialReplacement, at: now, db) }
        }
    }

    func createAccount(
        _ account: Account, accountsMax: Int, by actor: AuditActor
    ) throws(StorageError) {
        try writing { db in
            guard try fetchAccount(db, "name = ?", account.name.string) == nil else {
                throw StorageError.accountExists
            }
            try insert(account, accountsMax: accountsMax, by: actor, db)
        }
    }

    /// - Throws: ``StorageError/tooMany(_:)``.
    func insert(
        _ account: Account, accountsMax: Int, by actor: AuditActor, _ db: Database
    ) throws {
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM account") ?? 0
        guard count < accountsMax else { throw StorageError.tooMany("accounts") }
        try db.execute(
            sql: "INSERT INTO account (id, name, created) VALUES (?, ?, ?)",
            arguments: [account.id.string, account.name.string, account.createdMilliseconds])
        try record(
            AuditEvent(.accountCreated, of: account.id, by: actor), at: account.createdMilliseconds,
            db)
    }

    func account(named name: AccountName) throws(StorageError) -> Account? {
        try reading { try fetchAccount($0, "name = ?", name.string) }
    }

    func account(_ id: AccountID) throws(StorageError) -> Account? {
        try reading { try fetchAccount($0, "id = ?", id.string) }
    }

    func accounts(
        after name: AccountName?, containing part: String?, max: Int
    ) throws(StorageError) -> [Account] {
        try reading { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT \(Account.columns) FROM account
                    WHERE name > ?1 AND (?2 IS NULL OR instr(name, ?2) > 0)
                    ORDER BY name LIMIT ?3
                    """, arguments: [name?.string ?? "", part, max]
            ).compactMap { try? Account($0) }
        }
    }

    func rename(
        _ account: AccountID, to name: AccountName, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try writing { db in
            guard let old = try fetchAccount(db, "id = ?", account.string) else {
                throw StorageError.noSuchAccount
            }
            guard old.name != name else { return }
            guard try fetchAccount(db, "name = ?", name.string) == nil else {
                throw StorageError.accountExists
            }
            try db.execute(
                sql: "UPDATE account SET name = ? WHERE id = ?",
                arguments: [name.string, account.string])
            try record(AuditEvent(.accountRenamed, of: account, by: actor), at: now, db)
        }
    }

    func limit(
        _ account: AccountID, to limits: AccountLimits, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try writing { db in
            guard let old = try fetchAccount(db, "id = ?", account.string) else {
                throw StorageError.noSuchAccount
            }
            guard old.limits != limits else { return }
            try db.execute(
                sql: "UPDATE account SET limits = ? WHERE id = ?",
                arguments: [limits.text, account.string])
            try record(AuditEvent(limits, of: account, by: actor), at: now, db)
        }
    }

    func fetchAccount(
        _ db: Database, _ condition: String, _ values: String...
    ) throws -> Account? {
        try Row.fetchOne(
            db, sql: "SELECT \(Account.columns) FROM account WHERE \(condition)",
            arguments: StatementArguments(values)
        ).map(Account.init)
    }
}

extension SQLiteServerStorage {
    func apps() throws(StorageError) -> [RegisteredApp] {
        try reading { db in
            try Row.fetchAll(db, sql: "SELECT identifier, registered FROM app ORDER BY identifier")
                .compactMap { try? RegisteredApp($0) }
        }
    }

    func register(
        _ app: RegisteredApp, appsMax: Int, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try writing { db in
            let identifier = app.identifier.string
            let isKnown = try Bool.fetchOne(
                db, sql: "SELECT 1 FROM app WHERE identifier = ?", arguments: [identifier])
            guard isKnown == nil else { return false }
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM app") ?? 0
            guard count < appsMax else { throw StorageError.tooMany("registered apps") }
            try db.execute(
                sql: "INSERT INTO app (identifier, registered) VALUES (?, ?)",
                arguments: [identifier, app.registered])
            try record(AuditEvent(.appRegistered, by: actor), at: app.registered, db)
            return true
        }
    }

    func removeApp(
        _ identifier: StoreIdentifier, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try writing { db in
            try db.execute(
                sql: "DELETE FROM app WHERE identifier = ?", arguments: [identifier.string])
            guard db.changesCount == 1 else { return false }
            try record(AuditEvent(.appRemoved, by: actor), at: now, db)
            return true
        }
    }
}
