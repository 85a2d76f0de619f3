// SPDX-License-Identifier: Apache-2.0

/// The content of a store's file, for disks in memory. A value, so that a copy is a backup.
package struct DiskContent: Sendable {
    /// Counts the saves.
    package var version: Int64 = 0
    /// Each entry with the version in which it was saved.
    package var entries: [Key: (entry: StoredEntry, version: Int64)] = [:]
    package var meta = StoredMeta()
    /// The newest first.
    package var refused: [RefusedWrite] = []

    package init() {}

    /// The entries that were saved after that version, sorted by key; nil for all that are not empty.
    package func changes(after version: Int64?) -> DiskChanges {
        let changed = entries.values.filter { stored in
            guard let version else {
                return stored.entry.confirmed != nil || stored.entry.pending != nil
            }
            return stored.version > version
        }
        return DiskChanges(
            version: self.version, entries: changed.map { $0.entry }.inOrder { $0.key < $1.key },
            meta: meta)
    }

    package mutating func save(_ batch: SaveBatch) -> SaveOutcome {
        guard batch.expectedVersion == version else {
            return .conflict(changes(after: batch.expectedVersion))
        }
        version += 1
        for entry in batch.entries { entries[entry.key] = (entry, version) }
        if let meta = batch.meta { self.meta = meta }
        let added = batch.refused.filter { !refused.contains($0) }
        refused = (added.reversed() + refused).kept
        return .saved(version: version)
    }

    /// Removes the refused writes, but not those that were superseded.
    package mutating func forgetRefusedWrites() { refused.removeAll { !$0.isSuperseded } }
}
