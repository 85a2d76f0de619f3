// SPDX-License-Identifier: Apache-2.0

/// Creates the tables of a PostgreSQL database, or brings them to this program's format, in one
/// transaction. Blocks.
package struct DatabaseMigration: Sendable {
    package let format: Int
    /// 0 for an empty database.
    package let formatBefore: Int

    /// - Throws: ``ServerStartError``, ``StorageError``; nothing was changed then.
    package init(_ settings: PostgresSettings) throws {
        let (from, to) = try PostgresServerStorage.migrate(settings)
        (formatBefore, format) = (Int(from), Int(to))
    }
}
