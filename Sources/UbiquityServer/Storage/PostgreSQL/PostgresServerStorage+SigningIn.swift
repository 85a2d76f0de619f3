// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError) {
        let event = AuditEvent(.codeMade, of: code.account, by: actor)
        try writing { transaction in
            let found = try transaction.run(
                Self.lockingMaker(actor, of: code.account) + Self.removingCodes(expiredBy: now) + [
                    PostgresAudit.reading(event),
                    PostgresStatement(
                        "SELECT 1 FROM ubiquity.code WHERE hash = $1", [.bytes(code.hash.bytes)]),
                    PostgresStatement(
                        """
                        SELECT count(*) FROM ubiquity.code
                        WHERE account = $1 AND maker = $2 AND used IS NULL
                        """, [.text(code.account.string), .optional(actor.device?.bits)]
                    ),
                ])
            if transaction.mayBeRepeated, !found[5].rows.isEmpty { return }
            try Self.checkMaker(actor, found)
            let count = try found[6].rows.first?.count(0) ?? 0
            guard count < PairingRule.codesPerDeviceMax else {
                throw StorageError.tooManyWaiting("unused codes")
            }
            let inserting = PostgresStatement(
                """
                INSERT INTO ubiquity.code (hash, account, expires, maker, \(Self.terms))
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """,
                [
                    .bytes(code.hash.bytes), .text(code.account.string),
                    .integer(code.expiresMilliseconds), .optional(actor.device?.bits),
                ] + code.terms.values
            )
            try transaction.run(
                [inserting] + PostgresAudit.writing(event, at: now, after: found[4]))
        }
    }

    func addFirstCode(_ code: NewCode, now: Int64) throws(StorageError) -> Bool {
        try writing { transaction in
            let found = try transaction.run(
                [Directory.locking] + Self.removingCodes(expiredBy: now) + [
                    PostgresStatement("SELECT count(*) FROM ubiquity.code", [])
                ])
            guard try found[0].rows.first?.count(0) == 0 else { return false }
            // Without an account, there are no other codes.
            let count = try found[3].rows.first?.count(0) ?? 0
            if count >= PairingRule.firstCodesMax {
                _ = try transaction.run([PostgresStatement("DELETE FROM ubiquity.code", [])])
            }
            _ = try transaction.run([
                PostgresStatement(
                    """
                    INSERT INTO ubiquity.code (hash, account, expires) VALUES ($1, $2, $3)
                    ON CONFLICT (hash) DO NOTHING
                    """,
                    [
                        .bytes(code.hash.bytes), .text(code.account.string),
                        .integer(code.expiresMilliseconds),
                    ]
                )
            ])
            return true
        }
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, naming name: AccountName?, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { transaction in
            let found = try transaction.run(
                "SELECT account, \(Self.terms) FROM ubiquity.code WHERE hash = $1",
                .bytes(code.bytes)
            ).rows.first
            guard let found else { throw StorageError.codeInvalid }
            let account = try found.account(0)
            let device = try device.on(CredentialTerms(found, from: 1), now: now)
            let signIn = SignIn(device, to: account, now: now)
            // Only the first account needs the directory.
            let directory = name == nil ? [] : [Directory.locking]
            let results = try transaction.run(
                directory + signIn.first + [
                    PostgresStatement(
                        """
                        UPDATE ubiquity.code SET used = $1
                        WHERE hash = $2 AND used IS NULL AND expires > $1
                        """, [.integer(now), .bytes(code.bytes)]
                    )
                ])
            guard let name else { return try signIn.redeem(results, transaction) }
            return try signIn.redeem(
                Array(results.dropFirst()), naming: name, results[0], transaction)
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
        try reading(Self.account(of: identity)) { try $0.rows.first.map(Account.init) }
    }

    func identities(of account: AccountID) throws(StorageError) -> [Identity] {
        let statement = PostgresStatement(
            """
            SELECT issuer, subject FROM ubiquity.identity WHERE account = $1
            ORDER BY issuer, subject
            """, .text(account.string))
        return try reading(statement) { result in
            try result.rows.map { row in
                Identity(
                    issuer: String(decoding: try row.bytes(0), as: UTF8.self),
                    subject: String(decoding: try row.bytes(1), as: UTF8.self))
            }
        }
    }

    private static func account(of identity: Identity) -> PostgresStatement {
        PostgresStatement(
            """
            SELECT account.id, account.name, account.created, account.limits
            FROM ubiquity.identity JOIN ubiquity.account ON account.id = identity.account
            WHERE issuer = $1 AND subject = $2
            """,
            [.bytes(Data(identity.issuer.utf8)), .bytes(Data(identity.subject.utf8))]
        )
    }
}

/// A device that is being signed in to an account, in two flights.
struct SignIn {
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

    /// Signs in by what the last of the results has used up.
    /// - Throws: ``StorageError/codeInvalid`` if it did not, ``StorageError/tooMany(_:)``.
    func redeem(
        _ results: [PostgresResult], _ transaction: PostgresTransaction
    ) throws -> (account: Account, device: Device) {
        guard let account = try results[0].rows.first.map(Account.init) else {
            throw StorageError.codeInvalid
        }
        if transaction.mayBeRepeated, let done = try done(results) { return (account, done) }
        guard results.last?.changes == 1 else { throw StorageError.codeInvalid }
        return (account, try finish(results, transaction))
    }

    /// The same for the first account, which this makes.
    /// - Parameter directory: The result of ``Directory/locking``.
    func redeem(
        _ results: [PostgresResult], naming name: AccountName, _ directory: PostgresResult,
        _ transaction: PostgresTransaction
    ) throws -> (account: Account, device: Device) {
        if transaction.mayBeRepeated, let known = try results[0].rows.first.map(Account.init),
            let done = try done(results)
        {
            return (known, done)
        }
        guard results.last?.changes == 1, try directory.rows.first?.count(0) == 0 else {
            throw StorageError.codeInvalid
        }
        let new = Account(id: account, name: name, createdMilliseconds: now)
        try transaction.run(
            PostgresServerStorage.inserting(new, accountsMax: 1, by: .device(id), directory))
        return (new, try finish(nil, transaction))
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
