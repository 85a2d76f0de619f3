// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A ``LocalStorage`` without a disk: one process's view of a ``MemoryDisk``.
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
        try disk.access(.forgetRefusedWrites) { $0.refused = [] }
    }

    package func tidy() {}

    package func close() {}
}
