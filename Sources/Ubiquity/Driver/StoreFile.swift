// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// A store's file of one account on this device: what is in it, who is told when another process
/// wrote it, and the right to lead, which goes with the file.
///
/// Shared state: `watcher`, set once and cleared by ``letGo()``, by its mutex, for that may come from
/// any thread. Everything else is a constant, and guards itself.
final class StoreFile: Sendable {
    let storage: SQLiteStorage
    /// What was in it when it was opened.
    let content: DiskChanges
    private let path: String
    private let lease: ProcessLease
    private let watcher = Mutex<FileWatcher?>(nil)

    /// Opens the file, or makes it.
    /// - Throws: ``LocalStorageError`` or ``SystemError``.
    init(path: String) throws {
        self.path = path
        storage = try SQLiteStorage(path: path)
        lease = try ProcessLease(path: ProcessLease.path(ofStore: path))
        content = try storage.load()
    }

    /// Calls on the queue when another process may have written, from now on.
    /// - Throws: ``SystemError``.
    func watch(on queue: DispatchQueue, changed: @escaping @Sendable () -> Void) throws {
        let watcher = try FileWatcher(
            folder: PrivateFiles.parent(of: path) ?? ".",
            prefix: (path as NSString).lastPathComponent + CommitBell.suffix, queue: queue,
            handler: changed)
        self.watcher.withLock { $0 = watcher }
    }

    /// Calls when this process leads: at once if no other does.
    func whenLeading(_ body: @escaping @Sendable () -> Void) {
        if lease.tryAcquire() {
            body()
        } else {
            lease.whenAcquired(body)
        }
    }

    /// Ends the watch, and passes the lead on. The storage is its driver's to close.
    func letGo() {
        watcher.withLock { watcher in
            watcher?.cancel()
            watcher = nil
        }
        lease.close()
    }
}
