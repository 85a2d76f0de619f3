// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError) {
        let event = AuditEvent(.codeMade, of: code.account, by: actor)
        try writing { transaction in
            let found = try transaction.run([
                Self.locking(code.account), Self.removingCodes(expiredBy: now),
                PostgresAudit.reading(event),
                PostgresStatement(
                    "SELECT 1 FROM ubiquity.code WHERE hash = $1", [.bytes(code.hash.bytes)]),
            ])
            // It may have been erased since it was looked up.
            guard !found[0].rows.isEmpty else { throw StorageError.noSuchAccount }
            if transaction.mayBeRepeated, !found[3].rows.isEmpty { return }
            let inserting = PostgresStatement(
                """
                INSERT INTO ubiquity.code (hash, account, expires, stores, credential_milliseconds)
                VALUES ($1, $2, $3, $4, $5)
                """,
                [
                    .bytes(code.hash.bytes), .text(code.account.string),
                    .integer(code.expiresMilliseconds),
                    .optional(code.terms.stores.map(StoreList.text)),
                    .optional(code.terms.milliseconds),
                ]
            )
            try transaction.run(
                [inserting] + PostgresAudit.writing(event, at: now, after: found[2]))
        }
    }

    /// Leaves those that others are working on to a later time.
    private static func removingCodes(expiredBy now: Int64) -> PostgresStatement {
        PostgresStatement(
            """
            DELETE FROM ubiquity.code WHERE hash IN (
                SELECT hash FROM ubiquity.code WHERE expires <= $1 FOR UPDATE SKIP LOCKED)
            """, [.integer(now)]
        )
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { transaction in
            let found = try transaction.run(
                """
                SELECT account, stores, credential_milliseconds FROM ubiquity.code WHERE hash = $1
                """, .bytes(code.bytes)
            ).rows.first
            guard let found else { throw StorageError.codeInvalid }
            let account = try found.account(0)
            var device = device
            device.stores = try StoreList.set(found.textIfAny(1))
            device.expiresMilliseconds = found.isNull(2) ? nil : now + (try found.time(2))
            let signIn = SignIn(device, to: account, now: now)
            let results = try transaction.run(
                signIn.first + [
                    PostgresStatement(
                        """
                        UPDATE ubiquity.code SET used = $1
                        WHERE hash = $2 AND used IS NULL AND expires > $1
                        """, [.integer(now), .bytes(code.bytes)]
                    )
                ])
            guard let known = try results[0].rows.first.map(Account.init) else {
                throw StorageError.codeInvalid
            }
            if transaction.mayBeRepeated, let done = try signIn.done(results) {
                return (known, done)
            }
            guard results.last?.changes == 1 else { throw StorageError.codeInvalid }
            return (known, try signIn.finish(results, transaction))
        }
    }

    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { transaction in
            var account = try transaction.run([Self.account(of: identity)])[0].rows.first
                .map(Account.init)
            // Nil unless it was found before the lock, which erasing may have had meanwhile.
            if let known = account {
                let signIn = SignIn(device, to: known.id, now: now)
                let results = try transaction.run(signIn.first)
                account = try results[0].rows.first.map(Account.init)
                if let account {
                    if transaction.mayBeRepeated, let done = try signIn.done(results) {
                        return (account, done)
                    }
                    return (account, try signIn.finish(results, transaction))
                }
            }
            return try signInNew(
                identity, preferredName, accountsMax: accountsMax, by: device, now: now,
                transaction)
        }
    }

    /// Makes the account, unless another node just did.
    private func signInNew(
        _ identity: Identity, _ preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64, _ transaction: PostgresTransaction
    ) throws -> (account: Account, device: Device) {
        let id = AccountID.random()
        let name = preferredName ?? AccountName(id.string)!
        let found = try transaction.run([
            Directory.locking, Self.account(of: identity), Self.account(named: name),
        ])
        if let account = try found[1].rows.first.map(Account.init) {
            // No other node can erase it: that needs the directory.
            let signIn = SignIn(device, to: account.id, now: now)
            let results = try transaction.run(signIn.first)
            if transaction.mayBeRepeated, let done = try signIn.done(results) {
                return (account, done)
            }
            return (account, try signIn.finish(results, transaction))
        }
        let account = Account(
            id: id, name: found[2].rows.isEmpty ? name : AccountName(id.string)!,
            createdMilliseconds: now)
        let signIn = SignIn(device, to: id, now: now)
        let making = try Self.inserting(
            account, accountsMax: accountsMax, by: .device(signIn.id), found[0])
        try transaction.run(
            making + [
                PostgresStatement(
                    "INSERT INTO ubiquity.identity (issuer, subject, account) VALUES ($1, $2, $3)",
                    [
                        .bytes(Data(identity.issuer.utf8)), .bytes(Data(identity.subject.utf8)),
                        .text(id.string),
                    ]
                )
            ])
        return (account, try signIn.finish(nil, transaction))
    }

    func account(of identity: Identity) throws(StorageError) -> Account? {
        try reading { try $0.run([Self.account(of: identity)])[0].rows.first.map(Account.init) }
    }

    func identities(of account: AccountID) throws(StorageError) -> [Identity] {
        try reading { transaction in
            try transaction.run(
                """
                SELECT issuer, subject FROM ubiquity.identity WHERE account = $1
                ORDER BY issuer, subject
                """, .text(account.string)
            ).rows.map { row in
                Identity(
                    issuer: String(decoding: try row.bytes(0), as: UTF8.self),
                    subject: String(decoding: try row.bytes(1), as: UTF8.self))
            }
        }
    }

    private static func account(of identity: Identity) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT account.id, account.name, account.created
            FROM ubiquity.identity JOIN ubiquity.account ON account.id = identity.account
            WHERE issuer = $1 AND subject = $2
            """,
            [.bytes(Data(identity.issuer.utf8)), .bytes(Data(identity.subject.utf8))]
        )
    }
}

/// A device that is being signed in to an account, in two flights.
private struct SignIn {
    let device: NewDevice
    let id = DeviceID.random()
    let account: AccountID
    let now: Int64

    init(_ device: NewDevice, to account: AccountID, now: Int64) {
        (self.device, self.account, self.now) = (device, account, now)
    }

    private var event: AuditEvent {
        AuditEvent(.deviceSignedIn, of: account, id, by: .device(id))
    }

    /// Locks the account, which the first result is, and reads what decides.
    var first: [PostgresStatement] {
        [
            PostgresServerStorage.locking(account),
            PostgresStatement(
                """
                SELECT count(*) FROM ubiquity.device
                WHERE account = $1 AND (expires IS NULL OR expires > $2)
                """, [.text(account.string), .integer(now)]
            ), PostgresAudit.reading(event),
            PostgresServerStorage.device(credential: device.credential),
        ]
    }

    /// The device that an earlier attempt signed in.
    func done(_ results: [PostgresResult]) throws -> Device? {
        let done = try results[3].rows.first.map(Device.init)
        return done?.reference.account == account ? done : nil
    }

    /// - Parameter results: Those of ``first``; nil for a new account.
    /// - Throws: ``StorageError/tooMany(_:)``.
    func finish(_ results: [PostgresResult]?, _ transaction: PostgresTransaction) throws -> Device {
        let count = try results?[1].rows.first?.count(0) ?? 0
        guard count < device.devicesPerAccountMax else {
            throw StorageError.tooMany("devices in this account")
        }
        let inserting = PostgresStatement(
            """
            INSERT INTO ubiquity.device
                (account, id, title, credential, created, seen, stores, expires)
            VALUES ($1, $2, $3, $4, $5, $5, $6, $7)
            """,
            [
                .text(account.string), .integer(id.bits), .bytes(Data(device.displayName.utf8)),
                .bytes(device.credential.bytes), .integer(now),
                .optional(device.stores.map(StoreList.text)), .optional(device.expiresMilliseconds),
            ]
        )
        try transaction.run(
            [inserting] + PostgresAudit.writing(event, at: now, after: results?[2]))
        let rights = DeviceRights(
            reference: DeviceReference(account: account, id: id), stores: device.stores,
            expiresMilliseconds: device.expiresMilliseconds)
        return Device(
            rights: rights, displayName: device.displayName, createdMilliseconds: now,
            seenMilliseconds: now)
    }
}
