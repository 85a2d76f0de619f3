// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB

/// A file that was verified to be a sound database of a server.
struct BackupFile {
    let path: String
    /// In bytes.
    let size: Int
    let accounts: Int

    /// - Throws: ``BackupError``.
    init(_ path: String) throws(BackupError) {
        self.path = path
        guard access(path, R_OK) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { throw .noFile(path: path) }
            throw .notBackup(path: path, reason: DataFolder.systemReason().lowercased())
        }
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue
        {
            throw .isFolder(path: path)
        }
        do {
            size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
            let queue = try DatabaseQueue(path: path, configuration: Self.configuration)
            accounts = try queue.read { db in
                guard try SQLiteSchema.check(db, path: path) > 0 else {
                    throw BackupError.notBackup(path: path, reason: "it is empty")
                }
                if let damage = try SQLiteSchema.damage(db) {
                    throw BackupError.notBackup(path: path, reason: damage)
                }
                return try Int.fetchOne(db, sql: "SELECT count(*) FROM account") ?? 0
            }
            try queue.close()
        } catch let error as BackupError {
            throw error
        } catch let error as ServerStartError {
            throw .notBackup(path: path, reason: Self.reason(error))
        } catch {
            throw .notBackup(path: path, reason: (error as? DatabaseError)?.message ?? "\(error)")
        }
    }

    private static func reason(_ error: ServerStartError) -> String {
        switch error {
        case .databaseForeign: "it is another program's database"
        case .databaseNewer(_, let version, let known):
            "its format is \(version), and this program knows formats up to \(known)"
        default: error.description
        }
    }

    /// Read-only, while others may write.
    static var configuration: Configuration {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(ServerDatabase.busySecondsMax)
        configuration.label = "ubiquity.backup"
        return configuration
    }
}
