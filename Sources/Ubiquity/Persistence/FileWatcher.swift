// SPDX-License-Identifier: Apache-2.0

package import Dispatch
internal import Foundation

/// Calls a handler when a file in a folder changes, appears or is replaced.
///
/// It may call once for several changes, and also when nothing relevant changed: the handler must
/// check. It calls on the given queue, and never after ``cancel()`` has returned there. The kernel
/// reports changes, by inotify on Linux and kqueue on Apple's systems. When it has no capacity left,
/// the folder is polled once a second.
package final class FileWatcher: Sendable {
    private let watch: FileWatch

    /// - Parameters:
    ///   - folder: An existing folder. It is watched itself, without its subfolders.
    ///   - file: The file's name. Must not be a database: where the kernel needs an open file, it
    ///     is opened.
    /// - Throws: ``SystemError`` if the folder cannot be watched.
    package init(
        folder: String, file: String, queue: DispatchQueue,
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        watch = try FileWatch(folder: folder, file: file, queue: queue, handler: handler)
    }

    deinit { cancel() }

    /// Ends the watch. Can be called on any thread.
    package func cancel() { watch.cancel() }
}

#if os(Linux)

/// Watches a folder by inotify. The source owns the descriptor and closes it. A user has a limit of
/// about 128 of them in all programs; when it is reached, the folder is polled once a second.
///
/// Unchecked: libdispatch sources are thread-safe, which their Swift types do not declare yet.
struct FileWatch: @unchecked Sendable {
    private let source: any DispatchSourceProtocol

    /// - Parameter open: Returns an inotify descriptor, or a negative number and `errno`.
    init(
        folder: String, file: String, queue: DispatchQueue,
        open: () -> CInt = { inotify_init1(CInt(IN_NONBLOCK) | CInt(IN_CLOEXEC)) },
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        do throws(SystemError) {
            source = try Self.inotify(open(), folder, file, queue, handler)
        } catch {
            guard [EMFILE, ENFILE, ENOSPC].contains(error.code) else { throw error }
            source = Self.timer(on: queue, handler)
        }
    }

    private static func inotify(
        _ watches: CInt, _ folder: String, _ file: String, _ queue: DispatchQueue,
        _ handler: @escaping @Sendable () -> Void
    ) throws(SystemError) -> any DispatchSourceProtocol {
        guard watches >= 0 else { throw SystemError(errno) }
        let events = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO
        guard inotify_add_watch(watches, folder, UInt32(events)) >= 0 else {
            let code = errno
            close(watches)
            throw SystemError(code)
        }
        let source = DispatchSource.makeReadSource(fileDescriptor: watches, queue: queue)
        source.setEventHandler {
            if readEvents(from: watches, of: Array(file.utf8)) { handler() }
        }
        source.setCancelHandler { close(watches) }
        source.resume()
        return source
    }

    /// Calls the handler once a second, whether anything changed or not: the handler's own check
    /// costs less than comparing file dates.
    private static func timer(
        on queue: DispatchQueue, _ handler: @escaping @Sendable () -> Void
    ) -> any DispatchSourceProtocol {
        let source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
        source.setEventHandler(handler: handler)
        source.resume()
        return source
    }

    func cancel() { source.cancel() }

    /// Reads all pending events.
    /// - Returns: Whether any is about the file, or events were lost in an overflow.
    private static func readEvents(from watches: CInt, of file: [UInt8]) -> Bool {
        var concerns = false
        withUnsafeTemporaryAllocation(byteCount: bufferBytes, alignment: 8) { buffer in
            while true {
                let count = read(watches, buffer.baseAddress, buffer.count)
                guard count > 0 else { return }
                if Self.events(UnsafeRawBufferPointer(rebasing: buffer[..<count]), concern: file) {
                    concerns = true
                }
            }
        }
        return concerns
    }

    private static func events(_ events: UnsafeRawBufferPointer, concern file: [UInt8]) -> Bool {
        var rest = events[...]
        while rest.count >= headerBytes {
            let event = UnsafeRawBufferPointer(rebasing: rest)
            let mask = event.load(fromByteOffset: 4, as: UInt32.self)
            let length = Int(event.load(fromByteOffset: 12, as: UInt32.self))
            // Padded with zeros.
            let name = event.dropFirst(headerBytes).prefix(length).prefix { $0 != 0 }
            if mask & UInt32(IN_Q_OVERFLOW) != 0 || name.elementsEqual(file) { return true }
            rest = rest.dropFirst(headerBytes + length)
        }
        return false
    }

    /// The header of `inotify_event`: descriptor, mask, cookie and the name's length. The name
    /// follows.
    private static let headerBytes = 16
    /// Holds at least fifteen events with the longest names.
    private static let bufferBytes = 4_096
}

#endif

/// The commit signal: tells the other processes' watchers that a commit is visible.
///
/// The write-ahead log is not enough. SQLite writes it, flushes it, which takes milliseconds, and
/// only then publishes the commit in shared memory, which no watcher sees. A process woken by the
/// write to the log looks too early, and is not woken again. So a byte of a file beside the store
/// is overwritten after each commit.
final class CommitSignal: Sendable {
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
}
