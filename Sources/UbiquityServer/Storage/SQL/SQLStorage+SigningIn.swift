// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension SQLStorage {
    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError) {
        let event = AuditEvent(.codeMade, of: code.account, by: actor)
        let own: [SQLValue] = [
            .text(code.account.string), .optional(actor.device?.bits), .integer(now),
        ]
        try writing { transaction in
            let found = try transaction.run(
                Self.lockingMaker(actor, of: code.account) + [
                    AuditWriting.reading(event),
                    SQLStatement(
                        "SELECT 1 FROM ubiquity.code WHERE hash = $1", [.bytes(code.hash.bytes)]),
                    SQLStatement(
                        """
                        SELECT count(*) FROM ubiquity.code
                        WHERE account = $1 AND maker = $2 AND expires > $3 AND used IS NULL
                        """, own),
                    SQLStatement(
                        """
                        DELETE FROM ubiquity.code WHERE hash IN (
                            SELECT hash FROM ubiquity.code
                            WHERE account = $1 AND maker = $2 AND expires <= $3
                            ORDER BY expires DESC LIMIT $5 OFFSET $4 FOR UPDATE SKIP LOCKED)
                        """,
                        own + [.integer(Int64(PairingRule.codesPerDeviceMax)), .integer(.max)]),
                ])
            if transaction.mayBeRepeated, !found[3].rows.isEmpty { return }
            try Self.checkMaker(actor, found)
            let count = try found[4].rows.first?.count(0) ?? 0
            guard count < PairingRule.codesPerDeviceMax else {
                throw StorageError.tooManyWaiting("unused codes")
            }
            let inserting = SQLStatement(
                """
                INSERT INTO ubiquity.code (hash, account, expires, maker, \(CredentialTerms.columns))
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """,
                [
                    .bytes(code.hash.bytes), .text(code.account.string),
                    .integer(code.expiresMilliseconds), .optional(actor.device?.bits),
                ] + code.terms.values
            )
            try transaction.run(
                [inserting] + AuditWriting.writing(event, at: now, after: found[2]))
        }
    }

    func addFirstCode(_ code: NewCode, now: Int64) throws(StorageError) -> Bool {
        try writing { transaction in
            let found = try transaction.run([Directory.locking])
            guard try found[0].rows.first?.count(0) == 0 else { return false }
            // Without an account, there are no other codes.
            _ = try transaction.run([
                SQLStatement(
                    """
                    DELETE FROM ubiquity.code WHERE hash NOT IN
                        (SELECT hash FROM ubiquity.code ORDER BY expires DESC LIMIT $1)
                    """, [.integer(Int64(PairingRule.firstCodesMax - 1))]),
                SQLStatement(
                    """
                    INSERT INTO ubiquity.code (hash, account, expires) VALUES ($1, $2, $3)
                    ON CONFLICT (hash) DO NOTHING
                    """,
                    [
                        .bytes(code.hash.bytes), .text(code.account.string),
                        .integer(code.expiresMilliseconds),
                    ]
                ),
            ])
            return true
        }
    }

    func redeem(
        _ code: SecretHash, by device: NewDevice, naming name: AccountName?, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { transaction in
            let found = try transaction.run(
                """
                SELECT account, \(CredentialTerms.columns), \(Self.adder("code"))
                FROM ubiquity.code WHERE hash = $1
                """, .bytes(code.bytes)
            ).rows.first
            guard let found else { throw StorageError.codeInvalid }
            let account = try found.account(0)
            var device = try device.on(CredentialTerms(found, from: 1), now: now)
            device.adder = found.isNull(4) ? nil : try found.device(4)
            let using = SQLStatement(
                """
                UPDATE ubiquity.code SET used = $1
                WHERE hash = $2 AND used IS NULL AND expires > $1
                """, .integer(now), .bytes(code.bytes))
            return try SignIn<Self>(device, to: account, now: now)
                .redeem(using, naming: name, transaction)
        }
    }

    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { transaction in
            let known = try transaction.run([Self.account(of: identity)])[0].rows.first
                .map(Account.init)
            // Erasing may have removed it before the lock.
            if let known,
                let signedIn = try SignIn<Self>(device, to: known.id, now: now).run(transaction)
            {
                return signedIn
            }
            return try signInNew(
                identity, preferredName, accountsMax: accountsMax, by: device, now: now,
                transaction)
        }
    }

    /// Makes the account, unless another node just did.
    private func signInNew(
        _ identity: Identity, _ preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64, _ transaction: DatabaseTransaction
    ) throws -> (account: Account, device: Device) {
        let id = AccountID.random()
        let name = preferredName ?? AccountName(id.string)!
        let found = try transaction.run([
            Directory.locking, Self.account(of: identity), .account(named: name),
        ])
        let known = try found[1].rows.first.map(Account.init)
        let signIn = SignIn<Self>(device, to: known?.id ?? id, now: now)
        if known == nil {
            let account = Account(
                id: id, name: found[2].rows.isEmpty ? name : AccountName(id.string)!,
                createdMilliseconds: now)
            let making = try Self.inserting(
                account, accountsMax: accountsMax, by: .device(signIn.id), found[0])
            try transaction.run(making + [Self.inserting(identity, of: id)])
        }
        // No other node can erase it: that needs the directory.
        guard let signedIn = try signIn.run(transaction) else { throw StorageError.noSuchAccount }
        return signedIn
    }

    private static func inserting(
        _ identity: Identity, of account: AccountID
    ) -> SQLStatement {
        SQLStatement(
            "INSERT INTO ubiquity.identity (issuer, subject, account) VALUES ($1, $2, $3)",
            .bytes(Data(identity.issuer.utf8)), .bytes(Data(identity.subject.utf8)),
            .text(account.string))
    }

    private static func account(of identity: Identity) -> SQLStatement {
        SQLStatement(
            """
            SELECT \(Account.columns) FROM ubiquity.account WHERE id = (
                SELECT account FROM ubiquity.identity WHERE issuer = $1 AND subject = $2)
            """,
            [.bytes(Data(identity.issuer.utf8)), .bytes(Data(identity.subject.utf8))]
        )
    }
}

/// A device that is being signed in to an account.
struct SignIn<Storage: SQLStorage> {
    typealias DatabaseTransaction = Storage.DatabaseTransaction

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
    private var first: [SQLStatement] {
        [
            .locking(account),
            SQLStatement(
                """
                SELECT count(*), count(adder) FROM ubiquity.device
                WHERE account = $1 AND (expires IS NULL OR expires > $2)
                """, [.text(account.string), .integer(now)]
            ), AuditWriting.reading(event),
            .device(credential: device.credential),
        ]
    }

    /// The device that an earlier attempt signed in.
    private func done(_ results: [DatabaseTransaction.StatementResult]) throws -> Device? {
        let done = try results[3].rows.first.map(Device.init)
        return done?.reference.account == account ? done : nil
    }

    /// Signs in.
    /// - Returns: Nil if there is no such account.
    /// - Throws: ``StorageError/tooMany(_:)``.
    func run(
        _ transaction: DatabaseTransaction
    ) throws -> (account: Account, device: Device)? {
        let results = try transaction.run(first)
        guard let account = try results[0].rows.first.map(Account.init) else { return nil }
        if transaction.mayBeRepeated, let done = try done(results) { return (account, done) }
        return (account, try finish(results, transaction))
    }

    /// Signs in by what a statement uses up.
    /// - Parameters:
    ///   - using: Changes one row, or none if it is used up.
    ///   - name: The name of the first account, which this makes; nil for an account that exists.
    /// - Throws: ``StorageError/codeInvalid``, ``StorageError/tooMany(_:)``.
    func redeem(
        _ using: SQLStatement, naming name: AccountName? = nil,
        _ transaction: DatabaseTransaction
    ) throws -> (account: Account, device: Device) {
        // Only the first account needs the directory.
        let directory = name == nil ? [] : [Directory.locking]
        let found = try transaction.run(directory + first + [using])
        let results = Array(found.dropFirst(directory.count))
        var account = try results[0].rows.first.map(Account.init)
        if transaction.mayBeRepeated, let account, let done = try done(results) {
            return (account, done)
        }
        guard results.last?.changes == 1 else { throw StorageError.codeInvalid }
        if let name {
            guard try found[0].rows.first?.count(0) == 0 else { throw StorageError.codeInvalid }
            let new = Account(id: self.account, name: name, createdMilliseconds: now)
            try transaction.run(
                Storage.inserting(new, accountsMax: 1, by: .device(id), found[0]))
            account = new
        }
        guard let account else { throw StorageError.codeInvalid }
        return (account, try finish(results, transaction))
    }

    /// - Parameter results: Those of ``first``.
    private func finish(
        _ results: [DatabaseTransaction.StatementResult], _ transaction: DatabaseTransaction
    ) throws -> Device {
        let counts = results[1].rows.first
        try device.checkRoom(
            besides: try counts?.count(0) ?? 0, added: try counts?.count(1) ?? 0)
        let inserting = SQLStatement(
            """
            INSERT INTO ubiquity.device
                (account, id, title, credential, created, seen, stores, expires, adder)
            VALUES ($1, $2, $3, $4, $5, $5, $6, $7, $8)
            """,
            [
                .text(account.string), .integer(id.bits), .bytes(Data(device.displayName.utf8)),
                .bytes(device.credential.bytes), .integer(now),
                .optional(device.stores.map(StoreList.text)), .optional(device.expiresMilliseconds),
                .optional(device.adder?.bits),
            ]
        )
        try transaction.run(
            [inserting] + AuditWriting.writing(event, at: now, after: results[2]))
        return Device(device, DeviceReference(account: account, id: id), now: now)
    }
}
