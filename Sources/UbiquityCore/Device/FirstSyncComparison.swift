// SPDX-License-Identifier: Apache-2.0

/// The keys of a store on a device and in its new account, compared before the first sync.
package struct FirstSyncComparison: Hashable, Sendable {
    /// Keys that only the device has: the first sync adds them to the account.
    package private(set) var onlyHere: Set<Key> = []
    /// Keys that only the account has: the device gets them.
    package private(set) var onlyThere: Set<Key> = []
    /// Keys with two values, one of which is lost.
    package private(set) var different: Set<Key> = []
    private var conflicts: [Conflict] = []

    private struct Conflict: Hashable {
        var here: Record
        var there: Record
        var isUnkept: Bool
    }

    /// Compares the entries on the device's disk with the server's records. Keys with a conflict
    /// policy are left out: they lose nothing.
    package init(_ entries: [StoredEntry], _ records: [Record]) {
        let merging = Set(records.map { $0.key }.filter { $0.isPart }.map { $0.whole })
            .union(entries.map { $0.key }.filter { $0.isPart }.map { $0.whole })
        let here = Self.values(entries.compactMap { $0.pending?.record ?? $0.confirmed }, merging)
        let there = Self.values(records, merging)
        onlyHere = Set(here.keys).subtracting(there.keys)
        onlyThere = Set(there.keys).subtracting(here.keys)
        let unkept = Set(entries.lazy.filter { $0.wasUnkept }.map { $0.key })
        for (key, record) in here {
            guard let other = there[key], other.content != record.content else { continue }
            different.insert(key)
            conflicts.append(
                Conflict(here: record, there: other, isUnkept: unkept.contains(key)))
        }
    }

    private static func values(_ records: [Record], _ merging: Set<Key>) -> [Key: Record] {
        records.reduce(into: [:]) { values, record in
            guard record.content != .deleted, !merging.contains(record.key.whole) else { return }
            values[record.key] = record
        }
    }

    /// The writes by which the device's values replace the account's, so that the first sync keeps
    /// them: one transaction for each key, with a timestamp later than what it replaces.
    /// - Parameters:
    ///   - now: The server's milliseconds since 1970.
    ///   - device: The device's ID in the account.
    package func writes(
        keeping choice: FirstSyncChoice, now: Int64, by device: DeviceID
    ) -> [Transaction] {
        conflicts.compactMap { conflict in
            switch choice {
            case .server: return nil
            case .newest:
                let (here, there) = (conflict.here.stamp, conflict.there.stamp)
                guard here.timestamp > there.timestamp else { return nil }
            case .device: break
            }
            let time = max(
                HybridTimestamp(milliseconds: now, counter: 0),
                conflict.there.stamp.timestamp.next)
            var write = conflict.here
            write.stamp = Stamp(time, device)
            return try? Transaction(
                [write], had: [write.key: conflict.there.stamp.withoutDigest],
                unkept: conflict.isUnkept ? [write.key] : [])
        }
    }
}

/// The values to keep of the keys that a device and its new account both have.
package enum FirstSyncChoice: String, Hashable, Sendable, CaseIterable {
    case server
    case device
    /// The values that were written later, key by key.
    case newest
}
