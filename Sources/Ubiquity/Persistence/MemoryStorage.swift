// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
package import UbiquityCore

/// A ``LocalStorage`` without a disk, which nobody leads: one process's view of a ``MemoryDisk``.
package final class MemoryStorage: LocalStorage {
    private let disk: MemoryDisk

    package init(_ disk: MemoryDisk = MemoryDisk()) { self.disk = disk }

    package func load() throws -> DiskChanges {
        try disk.access(.load) { $0.changes(after: nil) }
    }

    package func changes(after version: Int64) throws -> DiskChanges? {
        try disk.access(.changes) { content in
            content.version == version ? nil : content.changes(after: version)
        }
    }

    package func save(_ batch: SaveBatch) throws -> SaveOutcome {
        try disk.access(.save) { content in
            guard content.version == batch.expectedVersion else {
                return .conflict(content.changes(after: batch.expectedVersion))
            }
            content.apply(batch)
            return .saved(version: content.version)
        }
    }

    package func refusedWrites() throws -> [RefusedWrite] {
        try disk.access(.refusedWrites) { $0.refused }
    }

    package func forgetRefusedWrites() throws {
        try disk.access(.forgetRefusedWrites) { $0.refused.removeAll { !$0.isSuperseded } }
    }

    package func tidy() {}

    package func watch(changed: @escaping @Sendable () -> Void) {}

    package func whenLeading(_ body: @escaping @Sendable () -> Void) {}

    package func close() {}
}

/// A disk in memory that several ``MemoryStorage`` share, as processes share a file. It can be told
/// to fail.
///
/// Shared state: `content`, guarded by one mutex that every access holds, as a disk transaction
/// would.
package final class MemoryDisk: Sendable {
    package enum Operation: CaseIterable, Hashable, Sendable {
        case load, changes, save, refusedWrites, forgetRefusedWrites
    }

    struct Content {
        var version: Int64 = 0
        var entries: [Key: (entry: StoredEntry, version: Int64)] = [:]
        var meta = StoredMeta()
        /// The newest first.
        var refused: [RefusedWrite] = []
        fileprivate var failures: [Operation: LocalStorageError] = [:]
    }

    private let content = Mutex(Content())

    package init() {}

    /// Makes these operations throw this error from now on, or work again with nil.
    package func fail(
        _ operations: Set<Operation> = Set(Operation.allCases), with error: LocalStorageError?
    ) {
        content.withLock { content in
            for operation in operations { content.failures[operation] = error }
        }
    }

    func access<T: Sendable>(
        _ operation: Operation, _ body: (inout Content) -> T
    ) throws -> T {
        try content.withLock { content in
            if let failure = content.failures[operation] { throw failure }
            return body(&content)
        }
    }
}

extension MemoryDisk.Content {
    func changes(after version: Int64?) -> DiskChanges {
        let entries = self.entries.values.filter { stored in
            guard let version else {
                return stored.entry.confirmed != nil || stored.entry.pending != nil
            }
            return stored.version > version
        }
        return DiskChanges(version: self.version, entries: entries.map(\.entry), meta: meta)
    }

    mutating func apply(_ batch: SaveBatch) {
        version += 1
        for entry in batch.entries { entries[entry.key] = (entry, version) }
        if let meta = batch.meta { self.meta = meta }
        let added = batch.refused.filter { !refused.contains($0) }
        refused = (added.reversed() + refused).kept
    }
}
