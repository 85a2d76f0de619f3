// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// A store's file, with its watcher and its lease.
///
/// Shared state: `watcher`, set once and cleared by ``release()``, guarded by its mutex because
/// that may be called on any thread. Everything else is constant and thread-safe.
final class SQLiteStoreFile: StoreFile {
    let storage: any LocalStorage
    let content: DiskChanges
    private let path: String
    private let lease: ProcessLease
    private let watcher = Mutex<FileWatcher?>(nil)
    private let queue = DispatchQueue(label: "ubiquity.file")

    /// Opens the file, creating it if needed.
    /// - Throws: ``LocalStorageError`` or ``SystemError``.
    init(path: String) throws {
        self.path = path
        storage = try SQLiteStorage(path: path)
        lease = try ProcessLease(path: ProcessLease.path(ofStore: path))
        content = try storage.load()
    }

    /// - Throws: ``SystemError``.
    func watch(changed: @escaping @Sendable () -> Void) throws {
        let watcher = try FileWatcher(
            folder: PrivateFiles.parent(of: path) ?? ".",
            file: (path as NSString).lastPathComponent + CommitSignal.suffix, queue: queue,
            handler: changed)
        self.watcher.withLock { $0 = watcher }
    }

    func whenLeading(_ body: @escaping @Sendable () -> Void) {
        if lease.tryAcquire() {
            body()
        } else {
            lease.whenAcquired(body)
        }
    }

    func release() {
        watcher.withLock { watcher in
            watcher?.cancel()
            watcher = nil
        }
        storage.close()
        lease.close()
    }
}
