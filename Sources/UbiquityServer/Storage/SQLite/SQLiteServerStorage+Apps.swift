// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

extension SQLiteServerStorage {
    func apps() throws(StorageError) -> [RegisteredApp] {
        try reading { db in
            try Row.fetchAll(db, sql: "SELECT identifier, registered FROM app ORDER BY identifier")
                .compactMap(RegisteredApp.init(readable:))
        }
    }

    func register(
        _ app: RegisteredApp, appsMax: Int, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try writing { db in
            let identifier = app.identifier.string
            let isKnown = try Bool.fetchOne(
                db, sql: "SELECT 1 FROM app WHERE identifier = ?", arguments: [identifier])
            guard isKnown == nil else { return false }
            let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM app") ?? 0
            guard count < appsMax else { throw StorageError.tooMany("registered apps") }
            try db.execute(
                sql: "INSERT INTO app (identifier, registered) VALUES (?, ?)",
                arguments: [identifier, app.registered])
            try record(AuditEvent(.appRegistered, by: actor), at: app.registered, db)
            return true
        }
    }

    func removeApp(
        _ identifier: StoreIdentifier, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        try writing { db in
            try db.execute(
                sql: "DELETE FROM app WHERE identifier = ?", arguments: [identifier.string])
            guard db.changesCount == 1 else { return false }
            try record(AuditEvent(.appRemoved, by: actor), at: now, db)
            return true
        }
    }
}

extension RegisteredApp {
    /// Fails for an unreadable row. That app is then not registered, while the others are.
    fileprivate init?(readable row: Row) {
        guard let identifier = try? row.store(0), let registered = try? row.time(1) else {
            return nil
        }
        self.init(identifier: identifier, registered: registered)
    }
}
