// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// Replaces a server's database by a backup while no server is running on it. Blocks for the disk.
///
/// A cursor names the run of the server that committed its revision, and each run has a random
/// name. So the next start continues the copy under a new name. A device that was ahead of the copy
/// learns that this is another history: it pulls the whole store, and sends back what the copy
/// lacks. `docs/decisions/0001` says more.
///
/// Sign-in codes are removed, because one used after the copy was made would work again.
package struct Restoration: Sendable {
    package var accounts: Int
    package var devices: Int
    /// The path of the old database; nil if there was none.
    package var oldDatabase: String?
    /// The path where an operator's credential is missing; nil if there is one.
    package var missingCredential: String?

    /// - Parameters:
    ///   - file: The backup, which stays unchanged.
    ///   - replaces: Whether an existing database may be replaced.
    ///   - progress: Called on any thread.
    ///   - signsOutDevices: Whether every device must sign in again. Otherwise, devices that were
    ///     signed out after the copy was made are signed in again.
    /// - Throws: ``BackupError``, ``AtomicFileError``, ``ServerStartError``; the folder's database
    ///   is unchanged then.
    package init(
        of file: String, into dataFolder: String, replaces: Bool, signsOutDevices: Bool,
        progress: @escaping Backup.Progress = { _ in }
    ) throws {
        let folder = DataFolder(path: dataFolder)
        // It is said before the backup is checked, which takes its time.
        if FolderLock.isHeld(folder) ?? false { throw BackupError.folderInUse(folder.path) }
        progress(.checking)
        let backup = try BackupFile(file)
        try folder.make()
        let lock = try Self.lock(folder)
        defer { withExtendedLifetime(lock) {} }
        folder.removeDrafts()
        guard replaces || !folder.hasServerData else {
            throw BackupError.hasData(folder: folder.path)
        }
        let draft = try AtomicFile(path: folder.databasePath, replaces: true)
        try Backup.copy(
            backup.path, to: draft, secondsMax: Self.copyingSecondsMax,
            progress: progress)
        progress(.checking)
        devices = try Self.prepare(draft.draftPath, signsOutDevices: signsOutDevices)
        accounts = try BackupFile(draft.draftPath).accounts
        oldDatabase = try Self.setAside(folder)
        try draft.finish()
        let credential = folder.operatorCredentialPath
        missingCredential = FileManager.default.fileExists(atPath: credential) ? nil : credential
    }

    private static func lock(_ folder: DataFolder) throws -> FolderLock {
        do { return try FolderLock(folder) } catch ServerStartError.folderInUse {
            throw BackupError.folderInUse(folder.path)
        }
    }

    /// The time limit where none was given.
    private static let copyingSecondsMax = 86_400.0

    /// - Returns: The number of signed-in devices.
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
                for table in ["code", "sign_in_request", "handover"] {
                    try db.execute(sql: "DELETE FROM \(table)")
                }
                if signsOutDevices {
                    // A credential without a row is unknown.
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

    /// Gives the old database a second name. The new one then takes over the original name in one
    /// step, so that no server ever finds nothing there and starts empty. The log of a damaged
    /// database, which SQLite could not empty, is moved first, so that no log is ever beside
    /// another database. The log of a sound one is empty, so an interruption at any point leaves
    /// the old database whole.
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
        // Some file systems have no hard links.
        guard link(database, old) == 0 || rename(database, old) == 0 else {
            throw BackupError.notMade(path: old, reason: DataFolder.systemReason())
        }
        if let code = AtomicFile.flushFolder(of: database) {
            throw BackupError.notMade(path: old, reason: DataFolder.systemReason(code))
        }
        return old
    }

    /// - Throws: ``BackupError/inUse(path:)`` if another program has it open.
    private static func emptyLog(of database: String) throws {
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(ServerDatabase.busySecondsMax)
            let queue = try DatabaseQueue(path: database, configuration: configuration)
            _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try queue.close()
        } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
            throw BackupError.inUse(path: database)
        } catch {
            // It is damaged, and is replaced as it is.
        }
    }

    /// For example "ubiquity.sqlite.before-restore-20261121T170000Z", followed by a number if that
    /// is taken.
    private static func freeName(_ database: String) -> String {
        let time = Date().formatted(.iso8601).replacing("-", with: "").replacing(":", with: "")
        let name = "\(database).before-restore-\(time)"
        let names = [name] + (2...99).map { "\(name)-\($0)" }
        return names.first { !FileManager.default.fileExists(atPath: $0) } ?? name
    }
}
