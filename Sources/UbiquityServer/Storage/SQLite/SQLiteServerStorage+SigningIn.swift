// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

extension SQLiteServerStorage {
    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError) {
        try writing { db in
            try checkMaker(actor, of: code.account, db)
            if let maker = actor.device {
                let own: StatementArguments = [code.account.string, maker.bits, now]
                try db.execute(
                    sql: """
                        DELETE FROM code WHERE hash IN (
                            SELECT hash FROM code
                            WHERE account = ? AND maker = ? AND expires <= ?
                            ORDER BY expires DESC LIMIT -1 OFFSET ?)
                        """, arguments: own + [PairingRule.codesPerDeviceMax])
                let count = try Int.fetchOne(
                    db,
                    sql: """
                        SELECT count(*) FROM code
                        WHERE account = ? AND maker = ? AND expires > ? AND used IS NULL
                        """, arguments: own)
                guard count ?? 0 < PairingRule.codesPerDeviceMax else {
                    throw StorageError.tooManyWaiting("unused codes")
                }
            }
            try db.execute(
                sql: """
                    INSERT INTO code (hash, account, expires, maker, \(CredentialTerms.columns))
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    code.hash.bytes, code.account.string, code.expiresMilliseconds,
                    actor.device?.bits, code.terms.stores.map(StoreList.text),
                    code.terms.milliseconds, code.terms.latestMilliseconds,
                ])
            try record(AuditEvent(.codeMade, of: code.account, by: actor), at: now, db)
        }
    }

    func addFirstCode(_ code: NewCode, now: Int64) throws(StorageError) -> Bool {
        try writing { db in
            guard try !hasAccount(db) else { return false }
            // Without an account, there are no other codes.
            try db.execute(
                sql: """
                    DELETE FROM code WHERE hash NOT IN
                        (SELECT hash FROM code ORDER BY expires DESC LIMIT ?)
                    """, arguments: [PairingRule.firstCodesMax - 1])
            try db.execute(
                sql: "INSERT INTO code (hash, account, expires) VALUES (?, ?, ?)",
                arguments: [code.hash.bytes, code.account.string, code.expiresMilliseconds])
            return true
        }
    }

    private func hasAccount(_ db: Database) throws -> Bool {
        try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM account)") ?? false
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, naming name: AccountName?, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { db in
            try db.execute(
                sql: """
                    UPDATE code SET used = ? WHERE hash = ? AND used IS NULL AND expires > ?
                    """, arguments: [now, code.bytes, now])
            guard db.changesCount == 1,
                let row = try Row.fetchOne(
                    db,
                    sql: """
                        SELECT account, \(CredentialTerms.columns), \(Self.adder("code")) FROM code
                        WHERE hash = ?
                        """, arguments: [code.bytes])
            else { throw StorageError.codeInvalid }
            var device = try device.on(CredentialTerms(row, from: 1), now: now)
            device.adder = row.isNull(4) ? nil : try row.device(4)
            let id = DeviceID.random()
            let account: Account
            if let name {
                guard try !hasAccount(db) else { throw StorageError.codeInvalid }
                account = Account(
                    id: try row.account(0), name: name, createdMilliseconds: now)
                try insert(account, accountsMax: 1, by: .device(id), db)
            } else {
                guard let known = try fetchAccount(db, "id = ?", row.value(0)) else {
                    throw StorageError.codeInvalid
                }
                account = known
            }
            return (account, try insert(device, id, of: account.id, now: now, db))
        }
    }

    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { db in
            let id = DeviceID.random()
            let account =
                try fetchAccount(of: identity, db)
                ?? makeAccount(
                    for: identity, preferredName, accountsMax: accountsMax, now: now,
                    by: .device(id), db)
            return (account, try insert(device, id, of: account.id, now: now, db))
        }
    }

    private func fetchAccount(of identity: Identity, _ db: Database) throws -> Account? {
        let account = try String.fetchOne(
            db,
            sql: """
                SELECT account FROM identity
                WHERE issuer = \(SQLiteText.bound) AND subject = \(SQLiteText.bound)
                """,
            arguments: [SQLiteText.bytes(identity.issuer), SQLiteText.bytes(identity.subject)])
        return try account.flatMap { try fetchAccount(db, "id = ?", $0) }
    }

    private func makeAccount(
        for identity: Identity, _ preferredName: AccountName?, accountsMax: Int, now: Int64,
        by actor: AuditActor, _ db: Database
    ) throws -> Account {
        let id = AccountID.random()
        let free = try preferredName.flatMap { name in
            try fetchAccount(db, "name = ?", name.string) == nil ? name : nil
        }
        let account = Account(
            id: id, name: free ?? AccountName(id.string)!, createdMilliseconds: now)
        try insert(account, accountsMax: accountsMax, by: actor, db)
        try db.execute(
            sql: """
                INSERT INTO identity (issuer, subject, account)
                VALUES (\(SQLiteText.bound), \(SQLiteText.bound), ?)
                """,
            arguments: [
                SQLiteText.bytes(identity.issuer), SQLiteText.bytes(identity.subject), id.string,
            ])
        return account
    }
}

/// Text from outside, which is passed to SQLite with its length. GRDB binds and reads text up to
/// its first zero byte, and texts that differ only after one would be equal.
enum SQLiteText {
    /// The placeholder in a statement for ``bytes(_:)``.
    static let bound = "CAST(? AS TEXT)"
    static func bytes(_ text: String) -> Data { Data(text.utf8) }

    /// A column, to be read by ``text(_:)``.
    static func read(_ column: String) -> String { "CAST(\(column) AS BLOB)" }
    static func text(_ bytes: Data) -> String { String(decoding: bytes, as: UTF8.self) }
}
