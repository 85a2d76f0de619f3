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

    func setOperatorHash(_ hash: SecretHash) throws(StorageError) {
        try writing { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO secret (name, hash) VALUES ('operator', ?)",
                arguments: [hash.bytes])
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
            arguments: [account.id.string, account.name.string, account.created])
        try record(.accountCreated, of: account.id, now: account.created, by: actor, db)
    }

    func account(named name: AccountName) throws(StorageError) -> Account? {
        try reading { try fetchAccount($0, "name = ?", name.string) }
    }

    func account(_ id: AccountID) throws(StorageError) -> Account? {
        try reading { try fetchAccount($0, "id = ?", id.string) }
    }

    func accounts() throws(StorageError) -> [Account] {
        try accounts(after: nil, max: .max)
    }

    func accounts(after name: AccountName?, max: Int) throws(StorageError) -> [Account] {
        try reading { db in
            try Row.fetchAll(
                db,
                sql: "SELECT id, name, created FROM account WHERE name > ? ORDER BY name LIMIT ?",
                arguments: [name?.string ?? "", max]
            ).compactMap(Account.init)
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
            try record(.accountRenamed, of: account, now: now, by: actor, db)
        }
    }

    func fetchAccount(
        _ db: Database, _ condition: String, _ values: String...
    ) throws -> Account? {
        try Row.fetchOne(
            db, sql: "SELECT id, name, created FROM account WHERE \(condition)",
            arguments: StatementArguments(values)
        ).flatMap(Account.init)
    }
}

extension Account {
    /// Fails for a row that this program would not have written.
    fileprivate init?(_ row: Row) {
        guard let name = AccountName(row[1]) else { return nil }
        self.init(id: AccountID(row[0]), name: name, created: row[2])
    }
}
