// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)

internal import Darwin
internal import Dispatch
internal import Foundation
internal import Synchronization

/// A watch of a folder and of the files in it by kqueue, which tells of a folder only what
/// appears and goes there, and of a file's content only to those who hold that file open.
///
/// Shared state: `state`, guarded by a mutex: the queue's handlers and `cancel()` meet there.
final class FileWatch: Sendable {
    private struct State {
        var folder: (any DispatchSourceFileSystemObject)?
        var files: [String: any DispatchSourceFileSystemObject] = [:]
    }

    private let state = Mutex(State())
    private let path: String
    private let prefix: String
    private let queue: DispatchQueue
    private let handler: @Sendable () -> Void

    init(
        folder: String, prefix: String, queue: DispatchQueue,
        handler: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        path = folder
        self.prefix = prefix
        self.queue = queue
        self.handler = handler
        guard let source = watch(folder, { $0.filesChanged() }) else { throw SystemError(errno) }
        state.withLock { $0.folder = source }
        watchFiles()
    }

    func cancel() {
        state.withLock { state in
            state.folder?.cancel()
            state.files.values.forEach { $0.cancel() }
            state = State()
        }
    }

    private func filesChanged() {
        watchFiles()
        handler()
    }

    private func watchFiles() {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        for name in names where name.hasPrefix(prefix) {
            guard state.withLock({ $0.folder != nil && $0.files[name] == nil }),
                let source = watch(path + "/" + name, { $0.fileChanged(name) })
            else { continue }
            state.withLock { $0.files[name] = source }
        }
    }

    private func fileChanged(_ name: String) {
        let isGone = state.withLock { state in
            guard let source = state.files[name],
                !source.data.isDisjoint(with: [.delete, .rename])
            else { return false }
            source.cancel()
            state.files[name] = nil
            return true
        }
        if isGone { watchFiles() }
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
