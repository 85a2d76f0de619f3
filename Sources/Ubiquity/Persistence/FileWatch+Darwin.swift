// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)

internal import Darwin
internal import Dispatch
internal import Foundation
internal import Synchronization

/// Watches a folder and one file in it by kqueue, which only reports files that appear in or vanish
/// from a folder, and reports changes to a file only to those who hold it open.
///
/// Shared state: `state`, guarded by a mutex, because the queue's handlers and `cancel()` both use
/// it.
final class FileWatch: Sendable {
    private struct Sources {
        var folder: (any DispatchSourceFileSystemObject)?
        var file: (any DispatchSourceFileSystemObject)?
    }

    private let state = Mutex(Sources())
    private let path: String
    private let file: String
    private let queue: DispatchQueue
    private let handler: @Sendable () -> Void

    init(
        folder: String, file: String, queue: DispatchQueue,
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        path = folder
        self.file = file
        self.queue = queue
        self.handler = handler
        guard let source = watch(folder, { $0.folderChanged() }) else { throw SystemError(errno) }
        state.withLock { $0.folder = source }
        watchFile()
    }

    func cancel() {
        state.withLock { state in
            state.folder?.cancel()
            state.file?.cancel()
            state = Sources()
        }
    }

    private func folderChanged() {
        watchFile()
        handler()
    }

    /// Watches the file if it exists.
    private func watchFile() {
        guard state.withLock({ $0.folder != nil && $0.file == nil }),
            let source = watch(path + "/" + file, { $0.fileChanged() })
        else { return }
        state.withLock { $0.file = source }
    }

    private func fileChanged() {
        let isGone = state.withLock { state in
            guard let source = state.file, !source.data.isDisjoint(with: [.delete, .rename])
            else { return false }
            source.cancel()
            state.file = nil
            return true
        }
        if isGone { watchFile() }
        handler()
    }

    private func watch(
        _ path: String, _ changed: @escaping @Sendable (FileWatch) -> Void
    ) -> (any DispatchSourceFileSystemObject)? {
        let file = open(path, O_EVTONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        let source = DispatchSource.makeFileSystemObjectSource(
            fileDescriptor: file, eventMask: [.write, .extend, .delete, .rename], queue: queue)
        source.setEventHandler { [weak self] in
            if let self { changed(self) }
        }
        source.setCancelHandler { close(file) }
        source.resume()
        return source
    }
}

#endif
