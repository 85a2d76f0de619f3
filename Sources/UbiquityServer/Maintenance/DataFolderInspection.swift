// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
package import UbiquityCore

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
        /// The number of unreadable records and rows of stores, accounts and devices.
        package var unreadable = 0

        package init() {}
    }

    package var path: String
    package var folder: Entry?
    package var fileSystem = FileSystemKind.local
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
        fileSystem = folder.fileSystem
        self.folder = Entry(path: folder.path)
        canLook = access(folder.path, R_OK | X_OK) == 0
        database = Entry(path: folder.databasePath)
        log = Entry(path: folder.databasePath + "-wal")
        credential = Entry(path: folder.operatorCredentialPath)
        isRunning = FolderLock.isHeld(folder)
        if database != nil { content = Self.checked(folder.databasePath) }
    }

    private static func checked(_ path: String) -> Result<Database, ServerStartError> {
        do { return .success(try content(path)) } catch {
            return .failure(ServerDatabase.startError(error, path))
        }
    }

    private static func content(_ path: String) throws -> Database {
        let queue = try DatabaseQueue(path: path, configuration: BackupFile.configuration)
        defer { try? queue.close() }
        return try queue.read { db in
            let format = try SQLiteSchema.check(db, path: path)
            guard format > 0 else { return Database() }
            if let damage = try SQLiteSchema.damage(db) {
                throw ServerStartError.databaseDamaged(path: path, reason: damage)
            }
            func count(_ sql: String) throws -> Int { try Int.fetchOne(db, sql: sql) ?? 0 }
            var content = Database()
            content.accounts = try count("SELECT count(*) FROM account")
            content.devices = try count("SELECT count(*) FROM device")
            content.stores = try count("SELECT count(*) FROM store")
            // The others are examined once a server has migrated them.
            guard format == SQLiteSchema.version else { return content }
            let newest = try Row.fetchAll(db, sql: "SELECT time FROM record WHERE key = x''")
                .compactMap { try? $0.timestamp(0) }.max()
            content.newestWrite = newest?.milliseconds ?? 0
            content.unreadable = try countUnreadable(db)
            return content
        }
    }

    private static func countUnreadable(_ db: GRDB.Database) throws -> Int {
        let accounts = "SELECT \(Account.columns) FROM account"
        let devices = SQLiteTransaction.sql("SELECT \(Device.columns) FROM ubiquity.device")
        let stores = "SELECT account, identifier FROM store"
        return try SQLiteRecord.countUnreadable(db) + SQLiteVersion.countUnreadable(db)
            + Row.countUnreadable(accounts, db) { _ = try Account($0) }
            + Row.countUnreadable(devices, db) { _ = try Device($0) }
            + Row.countUnreadable(stores, db) { row in
                let store = StoreReference(
                    account: try row.account(0), identifier: try row.store(1))
                try SQLiteStore.fetch(store, db)?.recent.check()
            }
    }
}
