// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The commit signal: tells the other processes' watchers that a commit is visible.
///
/// The write-ahead log is not enough. SQLite writes it, flushes it, which takes milliseconds, and
/// only then publishes the commit in shared memory, which no watcher sees. A process woken by the
/// write to the log looks too early, and is not woken again. So a byte of a file beside the store
/// is overwritten after each commit. On Windows the folder is polled once a second anyway.
final class CommitSignal: Sendable {
    #if os(Windows)
    /// On Windows, the log is watched.
    static let suffix = "-wal"

    init(store path: String) {}

    func send() {}
    #else
    /// The suffix of the file's name, after the store's name.
    static let suffix = ".bell"

    private let file: Int32

    /// - Throws: ``SystemError`` if the file cannot be made.
    init(store path: String) throws(SystemError) {
        file = open(path + Self.suffix, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemError(errno) }
    }

    deinit { close(file) }

    /// If this fails, the others see the commit later: at the next one, or when they save.
    func send() { _ = pwrite(file, [UInt8(ascii: "!")], 1, 0) }
    #endif
}
