// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Tells the other processes' watchers that a commit can be seen now.
///
/// The log alone does not: SQLite writes it, flushes it, which takes milliseconds, and only then
/// publishes the commit, in shared memory that no watcher sees. Who is woken by the write of the log
/// looks too early, and nothing wakes it again. So a byte of a file beside the store is written over
/// after each commit. On Windows the folder is looked at once a second anyway.
final class CommitBell: Sendable {
    #if os(Windows)
    /// There, the log is looked at.
    static let suffix = "-wal"

    init(store path: String) {}

    func ring() {}
    #else
    /// What follows the store's name in the name of the file.
    static let suffix = ".bell"

    private let file: Int32

    /// - Throws: ``SystemError`` if the file cannot be made.
    init(store path: String) throws(SystemError) {
        file = open(path + Self.suffix, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemError(errno) }
    }

    deinit { close(file) }

    /// If it fails, the others see the commit later: at the next one, or when they save.
    func ring() { _ = pwrite(file, [UInt8(ascii: "!")], 1, 0) }
    #endif
}
