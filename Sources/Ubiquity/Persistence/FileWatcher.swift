// SPDX-License-Identifier: Apache-2.0

package import Dispatch
internal import Synchronization

/// Calls a handler when a file in a folder changes, appears or is replaced.
///
/// It may call once for several changes, and also when nothing relevant changed: the handler must
/// check. It calls on the given queue, and never after ``cancel()`` has returned there. The kernel
/// reports changes (inotify on Linux and Android, kqueue on Apple's systems). Elsewhere, or when
/// the kernel has no capacity left, the folder is polled once a second.
///
/// Shared state: `source`, set once and cleared by ``cancel()``, guarded by a mutex because
/// `cancel()` may be called on any thread.
package final class FileWatcher: Sendable {
    private let source: Mutex<FileWatch?>

    /// - Parameters:
    ///   - folder: An existing folder. It is watched itself, without its subfolders.
    ///   - file: The file's name. Must not be a database: where the kernel needs an open file, it
    ///     is opened.
    /// - Throws: ``SystemError`` if the folder cannot be watched.
    package init(
        folder: String, file: String, queue: DispatchQueue,
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        source = Mutex(
            try FileWatch(folder: folder, file: file, queue: queue, handler: handler))
    }

    deinit { cancel() }

    package func cancel() {
        let watch = source.withLock { source in
            defer { source = nil }
            return source
        }
        watch?.cancel()
    }
}
