// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension PostgresServerStorage {
    func apps() throws(StorageError) -> [RegisteredApp] {
        let statement = PostgresStatement(
            "SELECT identifier, registered FROM ubiquity.app ORDER BY identifier")
        return try reading(statement) { $0.rows.compactMap { try? RegisteredApp($0) } }
    }

    func register(
        _ app: RegisteredApp, appsMax: Int, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.appRegistered, by: actor)
        let isNew = try doing { transaction in
            let found = try transaction.run([
                Directory.locking,
                PostgresStatement(
                    "SELECT 1 FROM ubiquity.app WHERE identifier = $1",
                    [.text(app.identifier.string)]),
                PostgresStatement("SELECT count(*) FROM ubiquity.app", []),
                PostgresAudit.reading(event),
            ])
            guard found[1].rows.isEmpty else { return false }
            guard try found[2].rows.first?.count(0) ?? 0 < appsMax else {
                throw StorageError.tooMany("registered apps")
            }
            let registering = PostgresStatement(
                "INSERT INTO ubiquity.app (identifier, registered) VALUES ($1, $2)",
                [.text(app.identifier.string), .integer(app.registered)]
            )
            try transaction.run(
                [registering]
                    + PostgresAudit.writing(event, at: app.registered, after: found[3]))
            return true
        }
        if isNew { announce([.appsChanged]) }
        return isNew
    }

    func removeApp(
        _ identifier: StoreIdentifier, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool {
        let event = AuditEvent(.appRemoved, by: actor)
        let wasThere = try doing { transaction in
            let found = try transaction.run([
                Directory.locking,
                PostgresStatement(
                    "DELETE FROM ubiquity.app WHERE identifier = $1", [.text(identifier.string)]),
                PostgresAudit.reading(event),
            ])
            guard found[1].changes == 1 else { return false }
            try transaction.run(PostgresAudit.writing(event, at: now, after: found[2]))
            return true
        }
        if wasThere { announce([.appsChanged]) }
        return wasThere
    }
}
