// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import GRDB

/// A consistent copy of a server's database, made while the server may be running.
///
/// `VACUUM INTO` reads the database in one transaction. In WAL mode that blocks no writer, and the
/// copy has no free pages, so erased data is not in it. Blocks for the disk.
package struct Backup: Sendable {
    /// In bytes.
    package var size: Int
    package var accounts: Int
    package var path: String

    /// - Parameters:
    ///   - output: The path of the copy, readable by its owner only. It appears there when it is
    ///     complete, checked and flushed.
    ///   - replaces: Whether an existing file is replaced.
    ///   - secondsMax: The time after which copying is given up.
    ///   - progress: Called on any thread.
    /// - Throws: ``BackupError``, ``AtomicFileError``, ``ServerStartError``; there is no copy then.
    package init(
        of dataFolder: String, to output: String, replaces: Bool, secondsMax: Double,
        progress: @escaping Progress = { _ in }
    ) throws {
        let folder = DataFolder(path: dataFolder)
        try folder.requireServerData(R_OK)
        let draft = try AtomicFile(path: output, replaces: replaces)
        try Self.copy(
            folder.databasePath, to: draft, secondsMax: secondsMax, progress: progress)
        progress(.checking)
        let copy = try BackupFile(draft.draftPath)
        try draft.finish()
        (size, accounts, path) = (copy.size, copy.accounts, draft.path)
    }

    package enum Step: Hashable, Sendable {
        /// The size of the copy so far, and about that of the whole.
        case copying(bytes: Int, of: Int)
        case checking
    }

    package typealias Progress = @Sendable (Step) -> Void

    private static let progressMilliseconds = 200

    /// A log beside the database is part of it.
    static func copy(
        _ database: String, to draft: AtomicFile, secondsMax: Double,
        progress: @escaping Progress
    ) throws {
        do {
            let queue = try DatabaseQueue(path: database, configuration: BackupFile.configuration)
            let watchdog = DispatchWorkItem { queue.interrupt() }
            DispatchQueue.global().asyncAfter(deadline: .now() + secondsMax, execute: watchdog)
            defer { watchdog.cancel() }
            try queue.writeWithoutTransaction { db in
                _ = try SQLiteSchema.check(db, path: database)
                let all = try size(of: db)
                // SQLite says nothing while it copies, but the file grows.
                let timer = DispatchSource.makeTimerSource(queue: .global())
                timer.schedule(
                    deadline: .now(), repeating: .milliseconds(progressMilliseconds))
                timer.setEventHandler { [path = draft.draftPath] in
                    progress(.copying(bytes: FileStatus(path: path)?.bytes ?? 0, of: all))
                }
                timer.resume()
                defer { timer.cancel() }
                try db.execute(sql: "VACUUM INTO ?", arguments: [draft.draftPath])
            }
            try queue.close()
            try finishErasing(draft.draftPath)
        } catch let error as DatabaseError {
            throw BackupError(error, database: database, output: draft.path)
        }
    }

    /// The size of the pages in use.
    private static func size(of db: Database) throws -> Int {
        func number(_ name: String) throws -> Int {
            try Int.fetchOne(db, sql: "PRAGMA \(name)") ?? 0
        }
        return try (number("page_count") - number("freelist_count")) * number("page_size")
    }

    /// Removes the remaining data of erased accounts from the copy, if a server was in the middle
    /// of removing it.
    private static func finishErasing(_ path: String) throws {
        let queue = try DatabaseQueue(path: path)
        let isErasing = try queue.read { db in
            try db.tableExists("erased") && Bool.fetchOne(db, sql: "SELECT 1 FROM erased") ?? false
        }
        if isErasing { try SQLiteServerStorage(queue).scrub(pacedAt: nil) }
        try queue.close()
    }
}

/// The reason a backup cannot be made or restored, as a sentence for people.
package enum BackupError: Error, Hashable, Sendable {
    case takesTooLong
    case noRoom(path: String)
    case databaseUnreadable(path: String, reason: String)
    case noFile(path: String)
    case isFolder(path: String)
    /// Not a server's database, or damaged.
    case notBackup(path: String, reason: String)
    case hasData(folder: String)
    /// A server is running on it, or another command is at work.
    case folderInUse(String)
    /// Another program has the database open.
    case inUse(path: String)
    case notMade(path: String, reason: String)

    init(_ error: DatabaseError, database: String, output: String) {
        self =
            switch error.resultCode {
            case .SQLITE_INTERRUPT: .takesTooLong
            case .SQLITE_FULL: .noRoom(path: output)
            default:
                .databaseUnreadable(
                    path: database,
                    reason: error.message ?? "SQLite error \(error.extendedResultCode.rawValue)")
            }
    }
}

extension BackupError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .takesTooLong:
            "the backup took too long and was cancelled; give it more time with --seconds-max"
        case .noRoom(let path):
            "\(path) cannot be written: there is no room on its disk, or for the copying in the "
                + "folder of temporary files"
        case .databaseUnreadable(let path, let reason):
            "the database \(path) cannot be copied (\(reason)); `ubiquity doctor --data` says more"
        case .noFile(let path): "there is no file \(path)"
        case .isFolder(let path): "\(path) is a folder"
        case .notBackup(let path, let reason):
            "\(path) is not a backup that can be restored (\(reason)); nothing was changed"
        case .hasData(let folder):
            "\(folder) already has data; with --replace the backup takes its place, and the old "
                + "database is kept beside it"
        case .folderInUse(let folder):
            "a server is running on \(folder), or another command is at work there; stop it first, "
                + "for example with `systemctl stop ubiquity`. Nothing was changed"
        case .inUse(let path):
            "another program is using \(path), perhaps a backup; end it first. Nothing was changed"
        case .notMade(let path, let reason): "\(path) cannot be written: \(reason)"
        }
    }
}
