// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// One store's file on a device, shared by its processes.
///
/// A save is atomic and durable, as SQLite promises with its write-ahead log and a flush for each
/// commit: a torn last write is no write.
package final class VirtualDisk {
    /// The content. A value, so that a copy is a backup.
    package struct Content {
        package var saved = DiskContent()
        /// All records that ever waited here for the server.
        var everWaited: Set<Record> = []
    }

    package let name: DiskReference
    package var content = Content()
    package var isFull = false
    /// Temporarily unreadable.
    var isUnreadable = false
    /// The process that was stopped in the middle of a save. No other process can save.
    weak var writer: (any VirtualDiskUser)?
    /// The processes that have it open, in order of arrival. The first one leads.
    package private(set) var processes: [any VirtualDiskUser] = []

    package init(name: DiskReference) { self.name = name }

    package var version: Int64 { content.saved.version }

    /// The values that an app would see when opening it.
    package var values: [Key: PropertyListValue] {
        content.saved.entries.values.reduce(into: [:]) { values, stored in
            let record = stored.entry.pending?.record ?? stored.entry.confirmed
            values[stored.entry.key] = record?.content.value
        }
    }

    /// The values confirmed by the server, by the keys of the records.
    var confirmedValues: [Key: PropertyListValue] {
        content.saved.entries.compactMapValues { $0.entry.confirmed?.content.value }
    }

    /// The records that wait for the server.
    var waitingKeys: Set<Key> {
        Set(content.saved.entries.lazy.filter { $0.value.entry.pending != nil }.map(\.key))
    }

    package func changes(after version: Int64) -> DiskChanges {
        content.saved.changes(after: version)
    }

    func everHad(_ write: Record) -> Bool { content.everWaited.contains(write) }

    package func save(_ batch: SaveBatch) -> SaveOutcome {
        let outcome = content.saved.save(batch)
        if case .saved = outcome {
            content.everWaited.formUnion(batch.entries.compactMap { $0.pending?.record })
        }
        return outcome
    }

    /// Opens the disk. The first process gets the lead.
    package func open(by process: any VirtualDiskUser) {
        processes.append(process)
        if processes.count == 1 { process.becomeLeader(of: self) }
    }

    /// Closes the disk and passes the lead on.
    package func close(by process: any VirtualDiskUser) {
        let led = processes.first === process
        detach(process)
        if led { processes.first?.becomeLeader(of: self) }
    }

    package func detach(_ process: any VirtualDiskUser) { processes.removeAll { $0 === process } }
}

/// A process that has a disk open.
package protocol VirtualDiskUser: AnyObject {
    /// This process holds the connection to the server from now on.
    func becomeLeader(of disk: VirtualDisk)

    /// Another process saved.
    func lookAtDisk()
}
