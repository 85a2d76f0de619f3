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
        guard !found[0].rows.isEmpty else { throw StorageError.noSuchAccount }
        try checkActor(actor, of: account, transaction)
        try resetStores()
        try transaction.run(
            [Self.marking(account, nil)] + AuditWriting.writing(event, at: now, after: found[2]))
    }
}
