// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A disk in memory that several ``MemoryStorage`` share, as processes share a file. It can be told
/// to fail.
///
/// Shared state: `state`, guarded by one mutex that every access holds, as a disk transaction
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
    }

    private struct State {
        var content = Content()
        var failures: [Operation: LocalStorageError] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// Makes these operations throw this error from now on, or work again with nil.
    package func fail(
        _ operations: Set<Operation> = Set(Operation.allCases), with error: LocalStorageError?
    ) {
        state.withLock { state in
            for operation in operations { state.failures[operation] = error }
        }
    }

    func access<T: Sendable>(
        _ operation: Operation, _ body: (inout Content) -> T
    ) throws -> T {
        try state.withLock { state in
            if let failure = state.failures[operation] { throw failure }
            return body(&state.content)
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
        refused = Array((added.reversed() + refused).prefix(SaveBatch.refusedWritesMax))
    }
}
