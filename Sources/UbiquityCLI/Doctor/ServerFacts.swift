// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityCore
import UbiquityServer

/// The state of a server's data folder, as far as it can be examined. ``findings`` are the
/// conclusions.
struct ServerFacts {
    var inspection: DataFolderInspection
    /// The free space on the disk of the folder; nil if unknown.
    var freeBytes: Int?
    /// The maximum of open files for a server: the running one, or one that this user starts.
    var openFilesMax: Int?
    /// A server's default maximum of connections.
    var connectionsMax: Int
    /// Milliseconds since 1970.
    var now: Int64
}

extension ServerFacts {
    /// The conclusions from the facts, in diagnostic order.
    var findings: [Finding] {
        guard let folder = inspection.folder else {
            return [
                .problem(
                    "folder",
                    "The folder \(inspection.path) does not exist, or cannot be seen; give the "
                        + "server's folder with --data, and run the command as the user that runs "
                        + "the server.")
            ]
        }
        guard inspection.canLook else {
            return [
                .problem(
                    "folder",
                    "The folder \(folder.path) cannot be read; run the command as its owner: sudo "
                        + "-u \(Machine.userName(folder.owner)) ubiquity doctor --data "
                        + "\(folder.path)")
            ]
        }
        guard inspection.database != nil else {
            return [
                folderFinding(folder),
                .problem(
                    "database",
                    "There is no database in \(inspection.path); start a server on it with "
                        + "`ubiquity serve`, or restore one with `ubiquity restore`."),
            ]
        }
        return [
            folderFinding(folder), databaseModeFinding, credentialFinding, databaseFinding,
            runningFinding, logFinding, diskFinding, clockFinding, filesFinding,
        ].compactMap(\.self)
    }

    private func folderFinding(_ folder: DataFolderInspection.Entry) -> Finding {
        let fileSystem = inspection.fileSystem
        if fileSystem.isNetwork || folder.mode & 0o077 == 0,
            let finding = Finding("folder", fileSystem, of: folder.path)
        {
            return finding
        }
        if folder.mode & 0o077 != 0 {
            return .problem(
                "folder",
                "Other users can read \(folder.path); make it private: chmod 700 \(folder.path)")
        }
        return .ok("folder", "Only its owner can access the folder \(folder.path).")
    }

    private var databaseModeFinding: Finding? {
        guard let database = inspection.database else { return nil }
        if database.mode & 0o077 != 0 {
            return .problem(
                "database-mode",
                "Other users can open \(database.path), which contains everybody's values; make it "
                    + "private: chmod 600 \(database.path)")
        }
        guard let folder = inspection.folder, database.owner != folder.owner else {
            return .ok("database-mode", "Only its owner can access the database.")
        }
        return .problem(
            "database-mode",
            "\(database.path) does not belong to the owner of its folder, so the server cannot "
                + "open it: chown --reference=\(folder.path) \(database.path)")
    }

    private var credentialFinding: Finding {
        guard let credential = inspection.credential else {
            return .note(
                "credential",
                "There is no operator's credential in the folder; unless it was moved to a safer "
                    + "place, write one (`ubo_` and a long random text) and restart the server.")
        }
        guard credential.mode & 0o077 == 0 else {
            return .problem(
                "credential",
                "Other users can read \(credential.path), and do everything that the operator may: "
                    + "chmod 600 \(credential.path), and write a new one into it if others may "
                    + "have read it.")
        }
        return .ok(
            "credential", "The operator's credential exists, and only its owner can read it.")
    }

    private var databaseFinding: Finding? {
        switch inspection.content {
        case nil: nil
        case .failure(let error): .problem("database", "The database cannot be used: \(error).")
        case .success(let content) where content.unreadable > 0:
            .problem(
                "database",
                "\(Phrase.counted(content.unreadable, "record")) in the database cannot be read, "
                    + "and devices can neither read nor write the data in question; restore an "
                    + "earlier backup with `ubiquity restore`.")
        case .success(let content):
            .ok(
                "database",
                "The database is intact: \(Phrase.counted(content.accounts, "account")), "
                    + "\(Phrase.counted(content.devices, "signed-in device")), "
                    + "\(Phrase.counted(content.stores, "store")).")
        }
    }

    private var runningFinding: Finding {
        switch inspection.isRunning {
        case true?: .ok("running", "A server is running on the folder.")
        case false?: .note("running", "No server is running on the folder.")
        case nil:
            .note(
                "running",
                "Cannot tell whether a server is running; run the command as the user that runs it."
            )
        }
    }

    private var logFinding: Finding? {
        guard let log = inspection.log, log.size > Self.logBytesNoted else { return nil }
        return .note(
            "log",
            "SQLite's log beside the database has \(Phrase.grouped(log.size >> 20)) MB; a long "
                + "read, such as a backup, keeps it from being emptied. If it stays like this, "
                + "restart the server.")
    }

    private static let logBytesNoted = 256 << 20

    private var diskFinding: Finding? {
        guard let freeBytes, let size = inspection.database?.size else { return nil }
        let free = "\(Phrase.grouped(freeBytes >> 20)) MB are free on the disk of the folder"
        if freeBytes < Self.freeBytesMin {
            return .problem("disk", free + "; make room, or writes will be refused.")
        }
        return freeBytes < size
            ? .note(
                "disk",
                free + ", less than the size of the database (\(Phrase.grouped(size >> 20)) MB): a "
                    + "backup does not fit beside it.")
            : .ok("disk", free + ".")
    }

    private static let freeBytesMin = 64 << 20

    private var clockFinding: Finding? {
        if now < Self.earliestNow {
            return .problem(
                "clock", "The clock says \(Phrase.time(now)), which is in the past; set it.")
        }
        guard case .success(let content)? = inspection.content else { return nil }
        guard content.newestWrite > now + Self.aheadMilliseconds else {
            return .ok("clock", "No write is later than the clock says.")
        }
        return .problem(
            "clock",
            "The newest write is from \(Phrase.time(content.newestWrite)), but the clock says "
                + "\(Phrase.time(now)): it was set back, or was wrong before. Until it reaches "
                + "that time, writes to those keys may be refused or lose.")
    }

    /// 2026-01-01.
    private static let earliestNow: Int64 = 1_767_225_600_000
    /// A server's limit, and a bit more.
    private static let aheadMilliseconds: Int64 = 120_000

    private var filesFinding: Finding? {
        guard let openFilesMax else { return nil }
        let files = Phrase.grouped(openFilesMax)
        // Files other than connections: the database, the log, the event loops.
        guard openFilesMax < connectionsMax + Self.filesBesides else {
            return .ok("open-files", "The server may have \(files) files open.")
        }
        return .note(
            "open-files",
            "The server may have \(files) files open, and accepts up to "
                + "\(Phrase.grouped(connectionsMax)) connections; if that many come, raise the "
                + "limit: LimitNOFILE= in its unit, or `ulimit -n`.")
    }

    private static let filesBesides = 64
}

extension ServerFacts {
    init(dataFolder: String) {
        inspection = DataFolderInspection(dataFolder: dataFolder)
        freeBytes = Machine.freeBytes(at: inspection.path)
        let lock = inspection.path + "/lock"
        openFilesMax =
            LockHolder(of: lock).flatMap { Machine.openFilesMax(of: $0.process) }
            ?? Machine.openFilesMax(of: getpid())
        connectionsMax = ServerSettings(dataFolder: dataFolder).connectionsMax
        now = Date().milliseconds
    }
}
