// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import UbiquityCore

/// A summary of a server's data folder, made without changing it and while a server may be running.
package struct DataFolderInspection: Sendable {
    /// The attributes of a file or folder.
    package struct Entry: Hashable, Sendable {
        package var path: String
        /// The lower nine bits of its mode.
        package var mode: Int
        package var owner: UInt32
        package var size: Int

        package init(path: String, mode: Int, owner: UInt32, size: Int) {
            self.path = path
            self.mode = mode
            self.owner = owner
            self.size = size
        }

        /// Fails if it does not exist or cannot be examined.
        package init?(path: String) {
            guard let status = FileStatus(path: path) else { return nil }
            self.init(
                path: path, mode: status.mode, owner: status.owner, size: status.bytes)
        }
    }

    package struct Database: Hashable, Sendable {
        package var accounts = 0
        package var devices = 0
        package var stores = 0
        /// The greatest timestamp of any write, in milliseconds since 1970; 0 if there is none.
        package var newestWrite: Int64 = 0
        /// The number of unreadable records.
        package var unreadable = 0

        package init() {}
    }

    package var path: String
    package var folder: Entry?
    /// Whether the current user can list and read the files in the folder.
    package var canLook: Bool
    package var database: Entry?
    package var log: Entry?
    package var credential: Entry?
    /// Whether a server is running on the folder; nil if unknown.
    package var isRunning: Bool?
    /// Nil if there is no database. The error is a sentence.
    package var content: Result<Database, ServerStartError>?

    package init(dataFolder: String) {
        let folder = DataFolder(path: dataFolder)
        path = folder.path
        self.folder = Entry(path: folder.path)
        canLook = access(folder.path, R_OK | X_OK) == 0
        database = Entry(path: folder.databasePath)
        log = Entry(path: folder.databasePath + "-wal")
        credential = Entry(path: folder.operatorCredentialPath)
        isRunning = Self.isLocked(folder.lockPath)
        if database != nil { content = Self.checked(folder.databasePath) }
    }

    /// Tries a shared lock for a moment: a server holds an exclusive one.
    private static func isLocked(_ path: String) -> Bool? {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT ? false : nil }
        defer { close(file) }
        if flock(file, LOCK_SH | LOCK_NB) == 0 { return false }
        return errno == EWOULDBLOCK ? true : nil
    }

    private static func checked(_ path: String) -> Result<Database, ServerStartError> {
        do { return .success(try content(path)) } catch {
            return .failure(SQLiteFile.startError(error, path))
        }
    }

    private static func content(_ path: String) throws -> Database {
        let queue = try DatabaseQueue(path: path, configuration: BackupFile.configuration)
        defer { try? queue.close() }
        return try queue.read { db in
            guard try SQLiteSchema.check(db, path: path) > 0 else { return Database() }
            let verdict = try String.fetchOne(db, sql: "PRAGMA quick_check(1)") ?? "ok"
            guard verdict == "ok" else {
                throw ServerStartError.databaseDamaged(path: path, reason: verdict)
            }
            func count(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: sql) ?? 0 }
            var content = Database()
            content.accounts = try count("SELECT count(*) FROM account")
            content.devices = try count("SELECT count(*) FROM device")
            content.stores = try count("SELECT count(*) FROM store")
            let newest = try Int64.fetchAll(db, sql: "SELECT newest FROM store")
                .map { HybridTimestamp(rawValue: UInt64(bitPattern: $0)) }.max()
            content.newestWrite = newest?.milliseconds ?? 0
            content.unreadable = try SQLiteRecord.countUnreadable(db)
            return content
        }
    }
}
