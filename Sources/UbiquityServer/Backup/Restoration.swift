// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// A backup put in the place of a server's database, while no server runs on it. Blocks for the disk.
///
/// Cursors name the run of the server in which their revision was committed, and each run draws its
/// name by chance. So at the next start the copy goes on under a new name, and a device that had come
/// further than the copy is told that this is another history: it pulls the whole store, and brings
/// back what the copy lacks. `docs/decisions/0001` says more.
///
/// Sign-in codes are removed: one that was used after the copy was made would work once more.
package struct Restoration: Sendable {
    package var accounts: Int
    package var devices: Int
    /// Where the old database is kept; nil: there was none.
    package var oldDatabase: String?
    /// Where an operator's credential is to be put, for there is none; nil: there is one.
    package var missingCredential: String?

    /// - Parameters:
    ///   - file: The backup. It stays as it is.
    ///   - replaces: Whether a database that is there may give way.
    ///   - signsOutDevices: Whether every device has to sign in anew, for those that were signed out
    ///     after the copy was made are signed in by it again.
    /// - Throws: ``BackupError``, ``FileDraftError``, ``ServerStartError``; then the folder's database
    ///   is as it was.
    package init(
        of file: String, into dataFolder: String, replaces: Bool, signsOutDevices: Bool
    ) throws {
        let folder = DataFolder(path: dataFolder)
        let backup = try BackupFile(file)
        try folder.make()
        let lock = try FolderLock(folder)
        defer { withExtendedLifetime(lock) {} }
        folder.removeDrafts()
        guard replaces || !folder.hasServerData else {
            throw BackupError.hasData(folder: folder.path)
        }
        let draft = try FileDraft(path: folder.databasePath, replaces: true)
        try Backup.copy(backup.path, to: draft, secondsMax: Self.copyingSecondsMax)
        devices = try Self.prepare(draft.draftPath, signsOutDevices: signsOutDevices)
        accounts = try BackupFile(draft.draftPath).accounts
        oldDatabase = try Self.setAside(folder)
        try draft.finish()
        let credential = folder.operatorCredentialPath
        missingCredential = FileManager.default.fileExists(atPath: credential) ? nil : credential
    }

    /// Where nobody has said how long it may take.
    private static let copyingSecondsMax = 86_400.0

    /// - Returns: How many devices are signed in.
    private static func prepare(_ path: String, signsOutDevices: Bool) throws -> Int {
        do {
            var configuration = Configuration()
            configuration.label = "ubiquity.restore"
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA secure_delete = ON")
                try SQLiteSchema.migrate(db, path: path)
            }
            let devices = try queue.write { db in
                try db.execute(sql: "DELETE FROM code")
                if signsOutDevices {
                    // Whatever the file's format: a credential without a row is unknown.
                    try db.execute(sql: "DELETE FROM device; DELETE FROM passed")
                }
                return try Int.fetchOne(db, sql: "SELECT count(*) FROM device") ?? 0
            }
            let event = AuditEvent(.databaseRestored, by: .operatorLocally)
            try SQLiteServerStorage(queue).record([
                AuditEntry(event, at: ServerClock.system.now())
            ])
            try queue.close()
            return devices
        } catch let error as DatabaseError {
            throw BackupError.notMade(path: path, reason: error.message ?? "SQLite refused")
        } catch let error as StorageError {
            throw BackupError.notMade(path: path, reason: "\(error)")
        }
    }

    /// Gives the old database a second name; its own is then taken by the new one in a single step,
    /// so that no server ever finds an empty place and begins anew. The log of a damaged database,
    /// which SQLite could not empty, is moved first: never is a log beside another's database.
    /// Of a sound one it is empty, so that whatever is cut off here leaves the old database whole.
    private static func setAside(_ folder: DataFolder) throws -> String? {
        let database = folder.databasePath
        guard folder.hasServerData else { return nil }
        try emptyLog(of: database)
        let old = freeName(database)
        for suffix in ["-wal", "-shm", "-journal"]
        where FileManager.default.fileExists(atPath: database + suffix) {
            guard rename(database + suffix, old + suffix) == 0 else {
                throw BackupError.notMade(path: old, reason: DataFolder.systemReason())
            }
        }
        // Some file systems have no second names.
        guard link(database, old) == 0 || rename(database, old) == 0 else {
            throw BackupError.notMade(path: old, reason: DataFolder.systemReason())
        }
        FileDraft.flushFolder(of: database)
        return old
    }

    /// - Throws: ``BackupError/inUse(path:)`` if another program keeps SQLite from it.
    private static func emptyLog(of database: String) throws {
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(SQLiteFile.busySecondsMax)
            let queue = try DatabaseQueue(path: database, configuration: configuration)
            _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try queue.close()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            throw BackupError.inUse(path: database)
        } catch {
            // It is damaged, and gives way as it is.
        }
    }

    /// "ubiquity.sqlite.before-restore-20261121T170000Z", with a number if that is taken.
    private static func freeName(_ database: String) -> String {
        let time = Date().formatted(.iso8601).replacing("-", with: "").replacing(":", with: "")
        let name = "\(database).before-restore-\(time)"
        let names = [name] + (2...99).map { "\(name)-\($0)" }
        return names.first { !FileManager.default.fileExists(atPath: $0) } ?? name
    }
}
