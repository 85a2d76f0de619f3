// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension SQLStorage {
    func apps() throws(StorageError) -> [RegisteredApp] {
        let statement = SQLStatement(
            "SELECT identifier, name, registered FROM ubiquity.app ORDER BY identifier")
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
                    "SELECT name FROM ubiquity.app WHERE identifier = $1",
                    [.text(app.identifier.string)]),
                SQLStatement("SELECT count(*) FROM ubiquity.app", []),
                AuditWriting.reading(event),
            ])
            if let known = found[1].rows.first {
                guard let name = app.name, try known.textIfAny(0) != name else { return false }
            } else if try found[2].rows.first?.count(0) ?? 0 >= appsMax {
                throw StorageError.tooMany("registered apps")
            }
            let registering = SQLStatement(
                """
                INSERT INTO ubiquity.app (identifier, registered, name) VALUES ($1, $2, $3)
                ON CONFLICT (identifier) DO UPDATE SET name = excluded.name
                """,
                [.text(app.identifier.string), .integer(app.registered), .optional(app.name)]
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
