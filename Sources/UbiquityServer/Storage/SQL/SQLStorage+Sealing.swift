// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension SQLStorage {
    /// Locks the stores too: a push locks its store before it reads the mark, so none that has not seen
    /// this one is committed afterwards.
    func seal(
        _ account: AccountID, with mark: AccountSealing, proof: Bytes32?, now: Int64,
        by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(
            .accountSealed, of: account, by: actor, detail: "generation \(mark.generation)")
        let device = actor.device ?? .unassigned
        let title = SQLStatement(
            "SELECT title FROM ubiquity.device WHERE account = $1 AND id = $2",
            DeviceReference(account: account, id: device).values)
        return try doing(.accountChanged(account)) { transaction in
            let found = try transaction.run([
                .locking(account), .lockingStores(of: account), AuditWriting.reading(event), title,
            ])
            var sealing = try Self.sealing(found[0])
            try checkActor(actor, of: account, transaction)
            let name = try found[3].rows.first.map { try $0.bytes(0) } ?? Data()
            let author = SealingState.Author(
                device: device, name: String(decoding: name, as: UTF8.self), milliseconds: now)
            do throws(SealingRefusal) {
                // Also if an earlier attempt did it.
                guard try sealing.take(mark, proof: proof, by: author) else { return false }
            } catch { throw StorageError.sealing(error) }
            try transaction.run(
                [Self.storing(sealing, of: account)]
                    + AuditWriting.writing(event, at: now, after: found[2]))
            return true
        }
    }

    func withdrawReset(
        _ account: AccountID, proof: Bytes32, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        let event = AuditEvent(.accountResetWithdrawn, of: account, by: actor)
        try writing { transaction in
            let found = try transaction.run([.locking(account), AuditWriting.reading(event)])
            var sealing = try Self.sealing(found[0])
            try checkActor(actor, of: account, transaction)
            guard sealing.withdrawReset(proof: proof) else { return }
            try transaction.run(
                [Self.storing(sealing, of: account)]
                    + AuditWriting.writing(event, at: now, after: found[1]))
        }
    }

    func accountsToReset(by now: Int64) throws(StorageError) -> [AccountID] {
        let statement = SQLStatement(
            "SELECT id FROM ubiquity.account WHERE reset_at <= $1", .integer(now))
        return try reading(statement) { try $0.rows.map { try $0.account(0) } }
    }

    // MARK: - Handovers

    func keep(
        _ box: [UInt8], as name: HandoverName, by device: DeviceReference, isConfined: Bool,
        now: Int64
    ) throws(StorageError) {
        let owner = SQLValue.text(device.account.string)
        try writing { transaction in
            let found = try transaction.run([
                .locking(device.account),
                SQLStatement(
                    "SELECT name, expires, confined FROM ubiquity.handover WHERE account = $1",
                    owner),
            ])
            guard !found[0].rows.isEmpty else { throw StorageError.noSuchAccount }
            try checkActor(.device(device.id), of: device.account, transaction)
            var shelf = HandoverShelf(
                try found[1].rows.compactMap { row in
                    HandoverName([UInt8](try row.bytes(0))).map { name in
                        HandoverShelf.Item(
                            name: name, expires: (try? row.integer(1)) ?? 0,
                            isConfined: (try? row.integer(2)) != 0)
                    }
                })
            let removals = shelf.add(name, isConfined: isConfined, at: now).map { removed in
                SQLStatement(
                    "DELETE FROM ubiquity.handover WHERE account = $1 AND name = $2", owner,
                    .bytes(Data(removed.bytes)))
            }
            let expires = now + HandoverShelf.keptMilliseconds
            try transaction.run(
                removals + [
                    SQLStatement(
                        """
                        INSERT INTO ubiquity.handover (account, name, expires, box, confined)
                        VALUES ($1, $2, $3, $4, $5)
                        """, owner, .bytes(Data(name.bytes)), .integer(expires),
                        .bytes(Data(box)), .integer(isConfined ? 1 : 0))
                ])
        }
    }

    func handover(
        _ name: HandoverName, of account: AccountID, now: Int64
    ) throws(StorageError) -> [UInt8]? {
        let statement = SQLStatement(
            """
            SELECT box FROM ubiquity.handover
            WHERE account = $1 AND name = $2 AND expires > $3
            """, .text(account.string), .bytes(Data(name.bytes)), .integer(now))
        return try reading(statement) { try $0.rows.first.map { [UInt8](try $0.bytes(0)) } }
    }

    // MARK: - The mark

    /// - Parameter locked: The result of locking the account.
    /// - Throws: ``StorageError/noSuchAccount``.
    private static func sealing(
        _ locked: DatabaseTransaction.StatementResult
    ) throws -> SealingState {
        guard let account = try locked.rows.first.map(Account.init) else {
            throw StorageError.noSuchAccount
        }
        return account.sealing
    }

    private static func storing(_ sealing: SealingState, of account: AccountID) -> SQLStatement {
        SQLStatement(
            "UPDATE ubiquity.account SET sealing = $1, reset_at = $2 WHERE id = $3",
            [
                sealing.bytes.map { .bytes(Data($0)) } ?? .null,
                sealing.ends.map { .integer($0) } ?? .null, .text(account.string),
            ])
    }

    /// The part of ``AccountStorage/reset(_:proof:now:run:by:)`` that is the same in both databases.
    /// - Parameter resetStores: Resets the account's stores, which are locked.
    /// - Returns: Whether anything has changed.
    func resetting(
        _ account: AccountID, proof: Bytes32?, now: Int64, by actor: AuditActor,
        _ transaction: DatabaseTransaction, _ resetStores: () throws -> Void
    ) throws -> Bool {
        let found = try transaction.run([.locking(account), .lockingStores(of: account)])
        let old = try Self.sealing(found[0])
        try checkActor(actor, of: account, transaction)
        var sealing = old
        do throws(SealingRefusal) {
            guard try sealing.reset(proof: proof, at: now, by: actor) else { return false }
        } catch {
            if error == .notSealed, transaction.mayBeRepeated { return false }
            throw StorageError.sealing(error)
        }
        let isNow = sealing.mark == nil
        if isNow { try resetStores() }
        try transaction.run([Self.storing(sealing, of: account)])
        let event = AuditEvent(
            isNow ? .accountReset : .accountResetAnnounced, of: account, by: actor)
        try AuditWriting.record([AuditEntry(event, at: now)], transaction)
        return true
    }
}
