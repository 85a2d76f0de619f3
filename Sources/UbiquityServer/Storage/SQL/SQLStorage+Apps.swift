// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension SQLStorage {
    func apps() throws(StorageError) -> [RegisteredApp] {
        let statement = SQLStatement(
            "SELECT identifier, registered FROM ubiquity.app ORDER BY identifier")
        return try reading(statement) { $0.rows.compactMap { try? RegisteredApp($0) } }
    }

    func register(
        _ app: RegisteredApp, appsMax: Int, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.appRegistered, by: actor)
        return try doing(.appsChanged) { transaction in
            let found = try transaction.run([
                Directory.locking,
                SQLStatement(
                    "SELECT 1 FROM ubiquity.app WHERE identifier = $1",
                    [.text(app.identifier.string)]),
                SQLStatement("SELECT count(*) FROM ubiquity.app", []),
                AuditWriting.reading(event),
            ])
            guard found[1].rows.isEmpty else { return false }
            guard try found[2].rows.first?.count(0) ?? 0 < appsMax else {
                throw StorageError.tooMany("registered apps")
            }
            let registering = SQLStatement(
                "INSERT INTO ubiquity.app (identifier, registered) VALUES ($1, $2)",
                [.text(app.identifier.string), .integer(app.registered)]
            )
            try transaction.run(
                [registering]
                    + AuditWriting.writing(event, at: app.registered, after: found[3]))
            return true
        }
    }

    func removeApp(
        _ identifier: StoreIdentifier, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.appRemoved, by: actor)
        return try doing(.appsChanged) { transaction in
            let found = try transaction.run([
                Directory.locking,
                SQLStatement(
                    "DELETE FROM ubiquity.app WHERE identifier = $1", [.text(identifier.string)]),
                AuditWriting.reading(event),
            ])
            guard found[1].changes == 1 else { return false }
            try transaction.run(AuditWriting.writing(event, at: now, after: found[2]))
            return true
        }
    }
}
