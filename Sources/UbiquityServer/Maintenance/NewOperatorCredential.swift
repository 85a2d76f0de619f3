// SPDX-License-Identifier: Apache-2.0

/// Makes an operator's credential for the servers on a database, in place of the one before. Blocks.
package struct NewOperatorCredential: Sendable {
    package let text = Secret.random(prefix: Secret.operatorPrefix)

    /// - Throws: ``ServerStartError``, ``StorageError``.
    package init(_ settings: PostgresSettings) throws {
        let storage = try PostgresServerStorage.openForAdministration(settings)
        try storage.setOperatorHash(SecretHash(of: text))
        try storage.close()
    }
}
