// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// One store's file on a device, as its processes share it.
///
/// A save happens wholly or not at all, and what it was told to have saved stays, as SQLite
/// promises with its write-ahead log and a flush for each commit: a torn last write is no write.
final class VirtualDisk {
    /// What is on it. A value, so that a copy is a backup.
    struct Content {
        var version: Int64 = 0
        var entries: [Key: (entry: StoredEntry, version: Int64)] = [:]
        var meta = StoredMeta()
        var refused: [RefusedWrite] = []
        /// All that ever waited here for the server.
        var everWaited: Set<Record> = []
    }

    let name: DiskName
    var content = Content()
    var isFull = false
    /// The processes that have it open, in the order in which they came; the first one leads.
    private(set) var processes: [VirtualProcess] = []

    init(name: DiskName) { self.name = name }

    var version: Int64 { content.version }

    /// What an app would see that opens it.
    var values: [Key: PropertyListValue] {
        content.entries.values.reduce(into: [:]) { values, stored in
            let record = stored.entry.pending?.record ?? stored.entry.confirmed
            values[stored.entry.key] = record?.content.value
        }
    }

    func changes(after version: Int64) -> DiskChanges {
        DiskChanges(
            version: content.version,
            entries: content.entries.values.filter { $0.version > version }.map(\.entry)
                .sorted { $0.key < $1.key },
            meta: content.meta)
    }

    func everHad(_ write: Record) -> Bool { content.everWaited.contains(write) }

    func save(_ batch: SaveBatch) -> SaveOutcome {
        guard batch.expectedVersion == content.version else {
            return .conflict(changes(after: batch.expectedVersion))
        }
        content.version += 1
        for entry in batch.entries { content.entries[entry.key] = (entry, content.version) }
        if let meta = batch.meta { content.meta = meta }
        content.everWaited.formUnion(batch.entries.compactMap { $0.pending?.record })
        content.refused = Array(
            (content.refused + batch.refused).suffix(SaveBatch.refusedWritesMax))
        return .saved(version: content.version)
    }

    /// The first to come gets the lead.
    func open(by process: VirtualProcess) {
        processes.append(process)
        if processes.count == 1 { process.getLead(of: self) }
    }

    /// Passes the lead on.
    func close(by process: VirtualProcess) {
        let led = processes.first === process
        forget(process)
        if led { processes.first?.getLead(of: self) }
    }

    func forget(_ process: VirtualProcess) { processes.removeAll { $0 === process } }
}
