// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Keeps a second server off a data folder. The kernel releases the lock when the process ends,
/// however it ends. The file is empty and stays.
final class FolderLock: Sendable {
    private let file: Int32

    /// - Throws: ``ServerStartError/folderInUse(path:)`` while another server holds the lock.
    init(_ folder: DataFolder) throws(ServerStartError) {
        file = open(folder.lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw .fileUnusable(path: folder.lockPath, reason: DataFolder.systemReason())
        }
        guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
            // Closed by `deinit`, which also runs when an initialiser throws after setting all
            // properties.
            throw .folderInUse(path: folder.path)
        }
    }

    /// Whether a server is running on the folder; nil if unknown.
    static func isHeld(_ folder: DataFolder) -> Bool? {
        // Tries a shared lock for a moment: a server holds an exclusive one.
        let file = open(folder.lockPath, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT ? false : nil }
        defer { close(file) }
        if flock(file, LOCK_SH | LOCK_NB) == 0 { return false }
        return errno == EWOULDBLOCK ? true : nil
    }

    deinit {
        // Closing is not enough: a child process being started also has the file open, until it
        // executes its program.
        flock(file, LOCK_UN)
        close(file)
    }
}
