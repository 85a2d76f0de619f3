// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The history of a store in memory, as a database keeps it.
package struct VirtualHistory: Sendable {
    private struct Version {
        var line: HistoryRule.Line
        var content: Content
    }

    private struct Current {
        var record: Record
        var revision: Int64
        /// In milliseconds since 1970; nil if it must not be kept.
        var came: Int64?
    }

    private var versions: [Version] = []
    private var current: [Key: Current] = [:]

    package init() {}

    /// Begins anew with these records.
    init(_ records: [Record], at moment: RecordVersion.Moment) {
        for record in records {
            current[record.key] = Current(
                record: record, revision: moment.revision, came: moment.milliseconds)
        }
    }

    /// Takes in what a push adds, and the records that it stores.
    package mutating func take(_ push: CommittedPush) {
        let change = push.history
        for (key, stamp) in change.replaced {
            guard let old = current[key] else { continue }
            guard let came = old.came else {
                add(HistoryRule.Line(forgotten: key, before: change.moment), .deleted)
                continue
            }
            add(
                old.record,
                came: RecordVersion.Moment(revision: old.revision, milliseconds: came),
                .replaced(change.moment, by: stamp))
        }
        for write in change.passing {
            add(
                write.record, came: change.moment,
                write.isLost
                    ? .lost(change.moment, by: write.by) : .replaced(change.moment, by: write.by))
        }
        for key in change.unkept {
            versions.removeAll { $0.line.key.whole == key }
            add(HistoryRule.Line(forgotten: key, before: change.moment), .deleted)
        }
        for record in push.writes {
            current[record.key] = Current(
                record: record, revision: push.position.revision, came: change.came(record))
        }
    }

    private mutating func add(
        _ record: Record, came: RecordVersion.Moment, _ fate: HistoryRule.Line.Fate
    ) {
        add(Self.line(record, came, fate), record.content)
    }

    private mutating func add(_ line: HistoryRule.Line, _ content: Content) {
        versions.append(Version(line: line, content: content))
    }

    private static func line(
        _ record: Record, _ came: RecordVersion.Moment, _ fate: HistoryRule.Line.Fate
    ) -> HistoryRule.Line {
        HistoryRule.Line(
            key: record.key, stamp: record.stamp, came: came, fate: fate,
            isDeletion: record.content == .deleted, bytes: record.pushBytes)
    }

    /// Removes a tombstone that was compacted.
    package mutating func compact(_ key: Key) { current[key] = nil }

    /// - Returns: The number of removed versions and notes.
    package mutating func prune(_ rule: HistoryRule, _ state: inout HistoryState) -> Int {
        let pruning = rule.prune(versions.map(\.line), of: state)
        let removed = Set(pruning.removed)
        versions = versions.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
        for line in pruning.forgotten { add(line, .deleted) }
        state = pruning.state
        return removed.count
    }

    /// The versions, the notes, and the current records, of a key with its parts or of all.
    package func lines(of key: Key?) -> [(line: HistoryRule.Line, content: Content)] {
        let now = current.values.map { current in
            let came = RecordVersion.Moment(
                revision: current.revision, milliseconds: current.came ?? 0)
            let line = Self.line(
                current.record, came, .current(isKept: current.came != nil))
            return (line: line, content: current.record.content)
        }
        let all = versions.map { (line: $0.line, content: $0.content) } + now
        guard let key else { return all }
        return all.filter { $0.line.key.whole == key.whole }
    }
}
