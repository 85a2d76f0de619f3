// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension SQLStorage {
    /// Locks the directory, so that requests of several nodes are counted one after the other.
    func addRequest(_ request: SignInRequest, now: Int64) throws(StorageError) {
        try writing { transaction in
            let found = try transaction.run(
                [
                    Directory.locking,
                    SQLStatement(
                        """
                        DELETE FROM ubiquity.sign_in_request WHERE hash IN (
                            SELECT hash FROM ubiquity.sign_in_request WHERE expires <= $1
                            ORDER BY expires DESC LIMIT $3 OFFSET $2 FOR UPDATE SKIP LOCKED)
                        """, .integer(now), .integer(Int64(PairingRule.requestsMax)),
                        .integer(.max)),
                    // Whatever is in a damaged row, it counts.
                    SQLStatement(
                        """
                        SELECT CAST(coalesce(address, '') AS text), hash
                        FROM ubiquity.sign_in_request
                        WHERE account IS NULL AND denied IS NULL AND (expires <= $1) IS NOT TRUE
                        """, [.integer(now)]),
                ]
            )[2].rows
            if transaction.mayBeRepeated,
                try found.contains(where: { try $0.bytes(1) == request.secret.bytes })
            {
                return
            }
            let addresses = try found.map { try $0.text(0) }
            guard PairingRule.admits(requestFrom: request.address, besides: addresses) else {
                throw StorageError.tooManyWaiting("devices waiting to sign in")
            }
            try transaction.run([
                SQLStatement(
                    """
                    INSERT INTO ubiquity.sign_in_request
                        (hash, user_code, title, address, expires, \(CredentialTerms.columns))
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                    """,
                    [
                        .bytes(request.secret.bytes), .bytes(request.userCode.bytes),
                        .bytes(Data(request.displayName.utf8)), .text(request.address),
                        .integer(request.expiresMilliseconds),
                    ] + request.terms.values
                )
            ])
        }
    }

    func request(userCode: SecretHash, now: Int64) throws(StorageError) -> SignInRequest? {
        try reading(Self.waiting(userCode, now: now)) { result in
            try result.rows.first.map { try SignInRequest($0, userCode) }
        }
    }

    private static func waiting(
        _ userCode: SecretHash, now: Int64, locking: String = ""
    ) -> SQLStatement {
        SQLStatement(
            """
            SELECT hash, title, address, expires, \(CredentialTerms.columns) FROM ubiquity.sign_in_request
            WHERE user_code = $1 AND expires > $2 AND account IS NULL AND denied IS NULL \(locking)
            """, [.bytes(userCode.bytes), .integer(now)]
        )
    }

    /// Locks the account before the request, as revoking a device does.
    func decide(
        _ userCode: SecretHash, _ decision: SignInDecision, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        try writing { transaction in
            let account = decision.account
            let locks = account.map { Self.lockingMaker(actor, of: $0) } ?? []
            let found = try transaction.run(
                locks + [
                    Self.waiting(userCode, now: now, locking: "FOR UPDATE"),
                    AuditWriting.reading(decision.event(about: "", by: actor)),
                ])
            guard let row = found[locks.count].rows.first else {
                if try transaction.mayBeRepeated && isDecided(userCode, decision, transaction) {
                    return
                }
                throw StorageError.noSuchRequest
            }
            if account != nil { try Self.checkMaker(actor, found) }
            let request = try SignInRequest(row, userCode)
            let event = decision.event(about: request.address, by: actor)
            try transaction.run(
                [Self.deciding(request.secret, decision, now: now, by: actor)]
                    + AuditWriting.writing(event, at: now, after: found[locks.count + 1]))
        }
    }

    private static func deciding(
        _ secret: SecretHash, _ decision: SignInDecision, now: Int64, by actor: AuditActor
    ) -> SQLStatement {
        switch decision {
        case .approved(let account, let terms):
            SQLStatement(
                """
                UPDATE ubiquity.sign_in_request SET account = $2, maker = $3, stores = $4,
                    credential_milliseconds = $5, credential_latest = $6
                WHERE hash = $1
                """,
                [
                    .bytes(secret.bytes), .text(account.string), .optional(actor.device?.bits),
                ] + terms.values
            )
        case .denied:
            SQLStatement(
                "UPDATE ubiquity.sign_in_request SET denied = $2 WHERE hash = $1",
                [.bytes(secret.bytes), .integer(now)])
        }
    }

    /// Whether an earlier attempt, whose commit was in doubt, decided in this way.
    private func isDecided(
        _ userCode: SecretHash, _ decision: SignInDecision, _ transaction: DatabaseTransaction
    ) throws -> Bool {
        let row = try transaction.run(
            "SELECT account, denied FROM ubiquity.sign_in_request WHERE user_code = $1",
            .bytes(userCode.bytes)
        ).rows.first
        guard let row else { return false }
        switch decision {
        case .approved(let account, _): return try row.textIfAny(0) == account.string
        case .denied: return !row.isNull(1)
        }
    }

    func redeem(
        request secret: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device) {
        try writing { transaction in
            let row = try transaction.run(
                """
                SELECT account, denied, title, \(CredentialTerms.columns), used,
                    \(Self.adder("sign_in_request"))
                FROM ubiquity.sign_in_request WHERE hash = $1 AND expires > $2
                """, .bytes(secret.bytes), .integer(now)
            ).rows.first
            guard let row, row.isNull(6) || transaction.mayBeRepeated else {
                throw StorageError.codeInvalid
            }
            guard row.isNull(1) else { throw StorageError.signInDenied }
            guard !row.isNull(0) else { throw StorageError.signInPending }
            var device = try device.on(CredentialTerms(row, from: 3), now: now)
            device.displayName = String(decoding: try row.bytes(2), as: UTF8.self)
            device.adder = row.isNull(7) ? nil : try row.device(7)
            let account = try row.account(0)
            let using = SQLStatement(
                """
                UPDATE ubiquity.sign_in_request SET used = $1
                WHERE hash = $2 AND used IS NULL AND account = $3 AND expires > $1
                """, .integer(now), .bytes(secret.bytes), .text(account.string))
            return try SignIn<Self>(device, to: account, now: now).redeem(using, transaction)
        }
    }

    /// The column of a code or of a request with the device that made or approved it, if that is
    /// confined.
    static func adder(_ table: String) -> String {
        """
        (SELECT id FROM ubiquity.device
            WHERE account = \(table).account AND id = maker AND stores IS NOT NULL)
        """
    }

    func removeCodes(expiredBy now: Int64) throws(StorageError) {
        try writing { _ = try $0.run(Self.removingCodes(expiredBy: now)) }
    }

    /// They leave what others are working on to a later time.
    static func removingCodes(expiredBy now: Int64) -> [SQLStatement] {
        [("code", "hash"), ("sign_in_request", "hash"), ("handover", "account, name")].map {
            table, key in
            SQLStatement(
                """
                DELETE FROM ubiquity.\(table) WHERE (\(key)) IN (
                    SELECT \(key) FROM ubiquity.\(table) WHERE expires <= $1
                    FOR UPDATE SKIP LOCKED)
                """, [.integer(now)]
            )
        }
    }

    /// Removes what a device has granted to others that have not signed in yet.
    static func removingCodes(madeBy device: DeviceReference) -> [SQLStatement] {
        ["code", "sign_in_request"].map { table in
            SQLStatement(
                """
                DELETE FROM ubiquity.\(table) WHERE account = $1 AND maker = $2 AND used IS NULL
                """, device.values)
        }
    }

    /// Locks the account, and finds the device that makes a code or approves a request. Two
    /// statements, whose results ``checkMaker(_:_:)`` examines.
    static func lockingMaker(
        _ actor: AuditActor, of account: AccountID
    ) -> [SQLStatement] {
        [
            .locking(account),
            SQLStatement(
                "SELECT 1 FROM ubiquity.device WHERE account = $1 AND id = $2",
                [.text(account.string), .optional(actor.device?.bits)]
            ),
        ]
    }

    /// Call with the account's lock, which who signs out a device needs, too.
    /// - Throws: ``StorageError/noSuchDevice`` if the actor is a device that is not signed in.
    func checkActor(
        _ actor: AuditActor, of account: AccountID, _ transaction: DatabaseTransaction
    ) throws {
        guard actor.device != nil else { return }
        let found = try transaction.run([Self.lockingMaker(actor, of: account)[1]])
        guard !found[0].rows.isEmpty else { throw StorageError.noSuchDevice }
    }

    /// - Throws: ``StorageError/noSuchAccount`` if it was erased since it was looked up,
    ///   ``StorageError/noSuchDevice`` if the actor is a device that is not signed in.
    static func checkMaker(
        _ actor: AuditActor, _ results: [DatabaseTransaction.StatementResult]
    ) throws(StorageError) {
        guard !results[0].rows.isEmpty else { throw .noSuchAccount }
        guard actor.device == nil || !results[1].rows.isEmpty else { throw .noSuchDevice }
    }
}

extension CredentialTerms {
    /// The values of the columns.
    var values: [SQLValue] {
        [
            .optional(stores.map(StoreList.text)), .optional(milliseconds),
            .optional(latestMilliseconds),
        ]
    }
}
