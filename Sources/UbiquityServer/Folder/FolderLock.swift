// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Keeps a second server off a data folder. The kernel unlocks when the process ends, however it
/// ends; the file stays, and is empty.
final class FolderLock: Sendable {
    private let file: Int32

    /// - Throws: ``ServerStartError/folderInUse(path:)`` while another server has it.
    init(_ folder: DataFolder) throws(ServerStartError) {
        file = open(folder.lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw .fileUnusable(path: folder.lockPath, reason: DataFolder.systemReason())
        }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            // Closed by `deinit`: an initializer that throws when all is set runs it.
            throw .folderInUse(path: folder.path)
        }
    }

    /// Whether a server runs on the folder; nil: that cannot be told.
    static func isHeld(_ folder: DataFolder) -> Bool? {
        // A shared lock for a moment: a server has an exclusive one.
        let file = open(folder.lockPath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT ? false : nil }
        defer { close(file) }
        if flock(file, LOCK_SH | LOCK_NB) == 0 { return false }
        return errno == EWOULDBLOCK ? true : nil
    }

    deinit {
        // Not by closing alone: a program that this process is just starting has the file too, until
        // it runs.
        flock(file, LOCK_UN)
        close(file)
    }
}
