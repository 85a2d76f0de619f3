// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

extension SQLiteServerStorage {
    func addRequest(_ request: SignInRequest, now: Int64) throws(StorageError) {
        try writing { db in
            try db.execute(
                sql: """
                    DELETE FROM sign_in_request WHERE hash IN (
                        SELECT hash FROM sign_in_request WHERE expires <= ?
                        ORDER BY expires DESC LIMIT -1 OFFSET ?)
                    """, arguments: [now, PairingRule.requestsMax])
            // Whatever is in a damaged row, it counts.
            let addresses = try String.fetchAll(
                db,
                sql: """
                    SELECT CAST(coalesce(address, '') AS TEXT) FROM sign_in_request
                    WHERE account IS NULL AND denied IS NULL 
                        AND (expires <= ?) IS NOT TRUE
                    """, arguments: [now])
            guard PairingRule.admits(requestFrom: request.address, besides: addresses) else {
                throw StorageError.tooManyWaiting("devices waiting to sign in")
            }
            try db.execute(
                sql: """
                    INSERT INTO sign_in_request
                        (hash, user_code, title, address, expires, stores, credential_milliseconds)
                    VALUES (?, ?, \(SQLiteText.bound), ?, ?, ?, ?)
                    """,
                arguments: [
                    request.secret.bytes, request.userCode.bytes,
                    SQLiteText.bytes(request.displayName), request.address,
                    request.expiresMilliseconds, request.terms.stores.map(StoreList.text),
                    request.terms.milliseconds,
                ])
        }
    }

    func request(userCode: SecretHash, now: Int64) throws(StorageError) -> SignInRequest? {
        try reading { try fetchRequest(userCode, now: now, $0) }
    }

    private func fetchRequest(
        _ userCode: SecretHash, now: Int64, _ db: Database
    ) throws -> SignInRequest? {
        try Row.fetchOne(
            db,
            sql: """
                SELECT hash, \(SQLiteText.read("title")), address, expires, \(CredentialTerms.columns)
                FROM sign_in_request
                WHERE user_code = ? AND expires > ? AND account IS NULL AND denied IS NULL
                """, arguments: [userCode.bytes, now]
        ).map { try SignInRequest($0, userCode) }
    }

    func decide(
        _ userCode: SecretHash, _ decision: SignInDecision, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try writing { db in
            guard let request = try fetchRequest(userCode, now: now, db) else {
                throw StorageError.noSuchRequest
            }
            if let account = decision.account { try checkMaker(actor, of: account, db) }
            switch decision {
            case .approved(let account, let terms):
                try db.execute(
                    sql: """
                        UPDATE sign_in_request SET account = ?, maker = ?, stores = ?,
                            credential_milliseconds = ?, credential_latest = ?
                        WHERE hash = ?
                        """,
                    arguments: [
                        account.string, actor.device?.bits, terms.stores.map(StoreList.text),
                        terms.milliseconds, terms.latestMilliseconds, request.secret.bytes,
                    ])
            case .denied:
                try db.execute(
                    sql: "UPDATE sign_in_request SET denied = ? WHERE hash = ?",
                    arguments: [now, request.secret.bytes])
            }
            try record(decision.event(about: request.address, by: actor), at: now, db)
        }
    }

    func redeem(
        request secret: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT account, denied, \(SQLiteText.read("title")), \(CredentialTerms.columns),
                        \(Self.adder("sign_in_request"))
                    FROM sign_in_request WHERE hash = ? AND used IS NULL AND expires > ?
                    """, arguments: [secret.bytes, now])
            guard let row else { throw StorageError.codeInvalid }
            guard row.isNull(1) else { throw StorageError.signInDenied }
            guard let id: String = try row.valueIfAny(0) else { throw StorageError.signInPending }
            guard let account = try fetchAccount(db, "id = ?", id) else {
                throw StorageError.codeInvalid
            }
            var device = try device.on(CredentialTerms(row, from: 3), now: now)
            device.displayName = SQLiteText.text(try row.value(2))
            device.adder = row.isNull(6) ? nil : try row.device(6)
            try db.execute(
                sql: "UPDATE sign_in_request SET used = ? WHERE hash = ?",
                arguments: [now, secret.bytes])
            return (account, try insert(device, of: account.id, now: now, db))
        }
    }

    /// The column of a code or of a request with the device that made or approved it, if that is
    /// confined.
    static func adder(_ table: String) -> String {
        """
        (SELECT id FROM device
            WHERE account = \(table).account AND id = maker AND stores IS NOT NULL)
        """
    }

    func removeCodes(expiredBy now: Int64) throws(StorageError) {
        try writing { try removeCodes(expiredBy: now, $0) }
    }

    func removeCodes(expiredBy now: Int64, _ db: Database) throws {
        for table in ["code", "sign_in_request"] {
            try db.execute(sql: "DELETE FROM \(table) WHERE expires <= ?", arguments: [now])
        }
    }

    /// Removes what a device has granted to others that have not signed in yet.
    func removeCodes(madeBy device: DeviceReference, _ db: Database) throws {
        for table in ["code", "sign_in_request"] {
            try db.execute(
                sql: "DELETE FROM \(table) WHERE account = ? AND maker = ? AND used IS NULL",
                arguments: [device.account.string, device.id.bits])
        }
    }

    /// - Throws: ``StorageError/noSuchAccount`` if it was erased since it was looked up,
    ///   ``StorageError/noSuchDevice`` if the actor is a device that is not signed in.
    func checkMaker(_ actor: AuditActor, of account: AccountID, _ db: Database) throws {
        guard try fetchAccount(db, "id = ?", account.string) != nil else {
            throw StorageError.noSuchAccount
        }
        try checkActor(actor, of: account, db)
    }

    /// - Throws: ``StorageError/noSuchDevice`` if the actor is a device that is not signed in.
    func checkActor(_ actor: AuditActor, of account: AccountID, _ db: Database) throws {
        guard let id = actor.device else { return }
        guard try Self.isSignedIn(DeviceReference(account: account, id: id), db) else {
            throw StorageError.noSuchDevice
        }
    }
}
