// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The server operator's credential, in a file that anyone with access to the data folder can read.
///
/// The file is authoritative. The database keeps a hash, so that the file may be moved to a safer
/// place. To renew the credential, write `ubo_` and a long random text to the file and restart.
package enum OperatorCredential {
    /// Adopts the file's credential, or makes one if there never was any.
    /// - Returns: The hash to compare with.
    static func prepare(
        in folder: DataFolder, storage: some ServerStorage
    ) throws(ServerStartError) -> SecretHash {
        do {
            let known = try storage.operatorHash()
            guard let text = try read(folder.operatorCredentialPath) else {
                return try known ?? make(in: folder, storage)
            }
            let hash = SecretHash(of: text)
            if hash != known {
                let now = known.map { _ in ServerClock.system.now() }
                try storage.setOperatorHash(hash, recordedAt: now)
            }
            return hash
        } catch let error as ServerStartError {
            throw error
        } catch {
            throw .fileUnusable(path: folder.databasePath, reason: "\(error)")
        }
    }

    /// Makes a new credential for the servers on a database, replacing the one before. Blocks.
    /// - Returns: The credential. The database only keeps its hash.
    /// - Throws: ``ServerStartError``, ``StorageError``.
    package static func renew(in database: PostgresSettings) throws -> String {
        let credential = Secret.random(prefix: Secret.operatorPrefix)
        let storage = try PostgresServerStorage.openForAdministration(database)
        try storage.setOperatorHash(
            SecretHash(of: credential), recordedAt: ServerClock.system.now())
        try storage.close()
        return credential
    }

    /// Nil if there is no file.
    private static func read(_ path: String) throws(ServerStartError) -> String? {
        guard let bytes = try PrivateFile.read(path) else { return nil }
        let credential = String(decoding: bytes, as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        guard credential.hasPrefix(Secret.operatorPrefix), credential.utf8.count >= 24 else {
            throw .fileUnusable(path: path, reason: "it does not contain an operator's credential")
        }
        return credential
    }

    private static func make(
        in folder: DataFolder, _ storage: some ServerStorage
    ) throws -> SecretHash {
        let credential = Secret.random(prefix: Secret.operatorPrefix)
        try write(credential + "\n", to: folder.operatorCredentialPath)
        let hash = SecretHash(of: credential)
        try storage.setOperatorHash(hash, recordedAt: nil)
        return hash
    }

    private static func write(_ text: String, to path: String) throws(ServerStartError) {
        do throws(AtomicFileError) {
            let draft = try AtomicFile(path: path, replaces: false)
            try draft.write(Array(text.utf8))
            try draft.finish()
        } catch { throw .fileUnusable(path: path, reason: error.description) }
    }
}
