// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension SQLStorage {
    /// Locks the stores too: a push locks its store before it reads the mark, so none that has not seen
    /// this one is committed afterwards.
    func seal(
        _ account: AccountID, with mark: AccountSealing, now: Int64, by actor: AuditActor
    ) throws(StorageError) {
        let event = AuditEvent(
            .accountSealed, of: account, by: actor, detail: "generation \(mark.generation)")
        try writing { transaction in
            let found = try transaction.run([
                .locking(account), .lockingStores(of: account), AuditWriting.reading(event),
            ])
            guard let old = try found[0].rows.first.map(Account.init) else {
                throw StorageError.noSuchAccount
            }
            try checkActor(actor, of: account, transaction)
            // Also if an earlier attempt did it.
            guard old.sealing != mark else { return }
            guard mark.mayReplace(old.sealing) else {
                throw StorageError.sealing(
                    .otherGeneration(old.sealing?.generation ?? 0, asked: mark.generation))
            }
            try transaction.run(
                [Self.marking(account, mark)]
                    + AuditWriting.writing(event, at: now, after: found[2]))
        } news: { _ in
            [.accountChanged(account)]
        }
    }

    // MARK: - Handovers

    func keep(
        _ box: [UInt8], as name: HandoverName, by device: DeviceReference, now: Int64
    ) throws(StorageError) {
        let owner = SQLValue.text(device.account.string)
        try writing { transaction in
            let found = try transaction.run([
                .locking(device.account),
                SQLStatement(
                    "SELECT name, expires FROM ubiquity.handover WHERE account = $1", owner),
            ])
            guard !found[0].rows.isEmpty else { throw StorageError.noSuchAccount }
            try checkActor(.device(device.id), of: device.account, transaction)
            var shelf = HandoverShelf(
                try found[1].rows.compactMap { row in
                    HandoverName([UInt8](try row.bytes(0))).map { name in
                        HandoverShelf.Item(name: name, expires: (try? row.integer(1)) ?? 0)
                    }
                })
            let removals = shelf.add(name, at: now).map { removed in
                SQLStatement(
                    "DELETE FROM ubiquity.handover WHERE account = $1 AND name = $2", owner,
                    .bytes(Data(removed.bytes)))
            }
            let expires = now + HandoverShelf.keptMilliseconds
            try transaction.run(
                removals + [
                    SQLStatement(
                        """
                        INSERT INTO ubiquity.handover (account, name, expires, box)
                        VALUES ($1, $2, $3, $4)
                        """, owner, .bytes(Data(name.bytes)), .integer(expires),
                        .bytes(Data(box)))
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

    private static func marking(_ account: AccountID, _ mark: AccountSealing?) -> SQLStatement {
        SQLStatement(
            "UPDATE ubiquity.account SET sealing = $1 WHERE id = $2",
            [mark.map { .bytes(Data($0.bytes)) } ?? .null, .text(account.string)])
    }

    /// The part of ``AccountStorage/reset(_:now:run:by:)`` that is the same in both databases.
    /// - Parameter resetStores: Resets the account's stores, which are locked.
    func resetting(
        _ account: AccountID, now: Int64, by actor: AuditActor,
        _ transaction: DatabaseTransaction, _ resetStores: () throws -> Void
    ) throws {
        let event = AuditEvent(.accountReset, of: account, by: actor)
        let found = try transaction.run([
            .locking(account), .lockingStores(of: account), AuditWriting.reading(event),
        ])
        guard let old = try found[0].rows.first.map(Account.init) else {
            throw StorageError.noSuchAccount
        }
        try checkActor(actor, of: account, transaction)
        guard old.sealing != nil else {
            if transaction.mayBeRepeated { return }
            throw StorageError.sealing(.notSealed)
        }
        try resetStores()
        try transaction.run(
            [Self.marking(account, nil)] + AuditWriting.writing(event, at: now, after: found[2]))
    }
}
