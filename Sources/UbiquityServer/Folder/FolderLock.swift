// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Makes sure that one process at a time writes to a data folder's database: a server, or a command
/// that restores or copies it. The kernel releases the lock when the process ends, however it ends.
/// The file is empty and stays.
final class FolderLock: Sendable {
    private let file: Int32

    /// Takes the lock, and waits for it as long as it is held by a command, or by a server that is
    /// starting or ending.
    /// - Parameter onWaiting: Called once, after a second.
    /// - Throws: ``ServerStartError/folderInUse(path:)`` if a server is running on the folder,
    ///   ``ServerStartError/folderBusy(path:)`` if it takes too long.
    static func take(
        _ folder: DataFolder, within patience: Duration = .seconds(300), onWaiting: () -> Void
    ) async throws(ServerStartError) -> FolderLock {
        try await attempt(folder, within: patience, onWaiting: onWaiting) {
            () throws(ServerStartError) in
            do throws(ServerStartError) { return try FolderLock(folder) } catch {
                let isHeld = error == .folderInUse(path: folder.path)
                guard isHeld, try !FolderSocket.isServed(folder) else { throw error }
                return nil
            }
        }
    }

    /// Calls `body` until it returns something, or throws.
    static func attempt<Result>(
        _ folder: DataFolder, within patience: Duration = .seconds(300), onWaiting: () -> Void,
        _ body: () throws(ServerStartError) -> Result?
    ) async throws(ServerStartError) -> Result {
        let start = ContinuousClock.now
        var isNoted = false
        while true {
            if let result = try body() { return result }
            let waited = ContinuousClock.now - start
            if !isNoted, waited > .seconds(1) {
                onWaiting()
                isNoted = true
            }
            guard waited < patience, !Task.isCancelled else {
                throw .folderBusy(path: folder.path)
            }
            try? await Task.sleep(for: .milliseconds(50))
        }
    }

    /// - Throws: ``ServerStartError/folderInUse(path:)`` while another process holds the lock.
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
        let file = open(folder.lockPath, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
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
