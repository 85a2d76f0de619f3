// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Everything that a store ever held, and the writes that it never held because they had lost. Kept
/// beside its history, from what was pushed and answered, to be compared with it.
package struct VersionLog: Sendable {
    package struct Entry: Sendable {
        package var record: Record
        package var came: RecordVersion.Moment
        package var ended: RecordVersion.Moment?
        package var isLost = false
        /// Whether the history must not have it.
        package var isUnkept = false

        /// The milliseconds for which the store held it, until it was replaced.
        package var duration: Int64 { ended.map { $0.milliseconds - came.milliseconds } ?? 0 }
    }

    package private(set) var entries: [Key: [Entry]] = [:]
    /// Up to which revision nothing of a key may be kept.
    package private(set) var unkept: [Key: Int64] = [:]
    /// The places of the current records.
    private var current: [Key: Int] = [:]
    /// The latest time of each device's writes so far. An earlier write that loses may be a repeat.
    private var latest: [DeviceID: HybridTimestamp] = [:]
    /// The revision with which the store was sealed whole, and its history began anew; 0 if it was not.
    package private(set) var began: Int64 = 0

    package init() {}

    /// Begins anew with these records.
    init(_ records: [Record], at moment: RecordVersion.Moment) {
        began = moment.revision
        for record in records {
            current[record.key] = 0
            add(Entry(record: record, came: moment))
        }
    }

    /// - Parameter writes: The records that the store holds since.
    package mutating func take(
        _ push: Push, _ results: [TransactionResult], _ writes: [Record],
        at moment: RecordVersion.Moment
    ) {
        let secret = secretKeys(push, results, writes)
        for write in writes {
            end(write.key, moment)
            current[write.key] = entries[write.key]?.count ?? 0
            add(Entry(record: write, came: moment, isUnkept: secret.contains(write.key.whole)))
        }
        let committed = Self.committed(push, results)
        defer { note(committed) }
        var lost: Set<Record> = []
        for (write, result) in committed {
            guard case .superseded(let winner) = result, !write.key.isCount,
                winner.stamp != write.stamp, lost.insert(write).inserted,
                latest[write.stamp.device].map({ $0 < write.stamp.timestamp }) ?? true
            else { continue }
            let isUnkept = secret.contains(write.key.whole)
            add(
                Entry(
                    record: write, came: moment, ended: moment, isLost: true, isUnkept: isUnkept))
        }
        for key in secret {
            unkept[key] = moment.revision
            for entry in entries.keys where entry.whole == key {
                for place in entries[entry]?.indices ?? 0..<0
                where entries[entry]?[place].ended != nil {
                    entries[entry]?[place].isUnkept = true
                }
            }
        }
    }

    private static func committed(
        _ push: Push, _ results: [TransactionResult]
    ) -> [(write: Record, result: WriteResult)] {
        zip(push.transactions, results).flatMap { transaction, result in
            guard case .committed(let results) = result else { return [(Record, WriteResult)]() }
            return Array(zip(transaction.writes, results))
        }
    }

    /// The keys, without their parts, of which the push must leave no trace.
    private func secretKeys(
        _ push: Push, _ results: [TransactionResult], _ writes: [Record]
    ) -> Set<Key> {
        var keys: Set<Key> = []
        for (transaction, result) in zip(push.transactions, results) {
            if case .committed = result { keys.formUnion(transaction.unkept.map(\.whole)) }
        }
        guard !keys.isEmpty else { return [] }
        let lost = Self.committed(push, results).filter { write, result in
            if case .superseded(let winner) = result { winner.stamp != write.stamp } else { false }
        }
        return keys.intersection(
            writes.map(\.key.whole)
                + lost.lazy.filter { !$0.write.key.isCount }.map {
                    $0.write.key.whole
                })
    }

    private mutating func note(_ committed: [(write: Record, result: WriteResult)]) {
        for (write, result) in committed where result != .olderThanCompacted {
            latest[write.stamp.device] = max(
                latest[write.stamp.device] ?? .zero, write.stamp.timestamp)
        }
    }

    private mutating func add(_ entry: Entry) {
        entries[entry.record.key, default: []].append(entry)
    }

    private mutating func end(_ key: Key, _ moment: RecordVersion.Moment) {
        guard let place = current.removeValue(forKey: key) else { return }
        entries[key]?[place].ended = moment
    }

    /// A tombstone that was compacted never ends, so it is no version.
    package mutating func compact(_ key: Key) { current[key] = nil }
}

/// A store's history as it is in the database, and what it must be.
package struct HistoryView {
    package var store: StoreReference
    package var lines: [(line: HistoryRule.Line, content: Content)]
    package var log: VersionLog
    package var state: StoreState
    package var rule: HistoryRule
    /// The time that the server's clock would show if it had never been set back.
    package var greatestNow: Int64
}
