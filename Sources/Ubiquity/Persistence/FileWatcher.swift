// SPDX-License-Identifier: Apache-2.0

package import Dispatch
internal import Synchronization

/// Calls a handler when one file of a folder changes, appears or is put in another's place.
///
/// It may call once for several changes, and for a change that others would not call one: the
/// handler looks for itself. It calls on the given queue, never after ``cancel()`` has returned
/// there. The kernel tells (inotify on Linux and Android, kqueue on Apple's systems); where
/// nobody does, or the kernel has no more room for it, the folder is looked at once a second.
///
/// Shared state: `source`, set once and cleared by ``cancel()``; guarded by a mutex, because
/// `cancel()` may come from any thread.
package final class FileWatcher: Sendable {
    private let source: Mutex<FileWatch?>

    /// - Parameters:
    ///   - folder: A folder that exists. It is watched itself; what is below its folders is not.
    ///   - file: Its name. Not a database's: where the kernel has to be shown the file, it is opened.
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
