// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
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

    func createAccount(_ account: Account, accountsMax: Int) throws(StorageError) {
        try writing { db in
            guard try fetchAccount(db, "name = ?", account.name.string) == nil else {
                throw StorageError.accountExists
            }
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM account") ?? 0
            guard count < accountsMax else { throw StorageError.tooMany("accounts") }
            try db.execute(
                sql: "INSERT INTO account (id, name, created) VALUES (?, ?, ?)",
                arguments: [account.id.string, account.name.string, account.created])
        }
    }

    func account(named name: AccountName) throws(StorageError) -> Account? {
        try reading { try fetchAccount($0, "name = ?", name.string) }
    }

    func account(_ id: AccountID) throws(StorageError) -> Account? {
        try reading { try fetchAccount($0, "id = ?", id.string) }
    }

    func accounts() throws(StorageError) -> [Account] {
        try reading { db in
            try Row.fetchAll(db, sql: "SELECT id, name, created FROM account ORDER BY name")
                .compactMap(Account.init)
        }
    }

    func addCode(
        _ hash: SecretHash, for account: AccountID, expires: Int64, now: Int64
    ) throws(StorageError) {
        try writing { db in
            try db.execute(sql: "DELETE FROM code WHERE expires <= ?", arguments: [now])
            try db.execute(
                sql: "INSERT INTO code (hash, account, expires) VALUES (?, ?, ?)",
                arguments: [hash.bytes, account.string, expires])
        }
    }

    private func fetchAccount(
        _ db: Database, _ condition: String, _ value: String
    ) throws -> Account? {
        try Row.fetchOne(
            db, sql: "SELECT id, name, created FROM account WHERE \(condition)",
            arguments: [value]
        ).flatMap(Account.init)
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { db in
            try db.execute(
                sql: """
                    UPDATE code SET used = ? WHERE hash = ? AND used IS NULL AND expires > ?
                    """, arguments: [now, code.bytes, now])
            guard db.changesCount == 1,
                let owner = try String.fetchOne(
                    db, sql: "SELECT account FROM code WHERE hash = ?", arguments: [code.bytes]),
                let account = try fetchAccount(db, "id = ?", owner)
            else { throw StorageError.codeInvalid }
            return (account, try insert(device, of: account.id, now: now, db))
        }
    }
}

extension Account {
    /// Nil for a row that this program would not have written.
    fileprivate init?(_ row: Row) {
        guard let name = AccountName(row[1]) else { return nil }
        self.init(id: AccountID(row[0]), name: name, created: row[2])
    }
}
