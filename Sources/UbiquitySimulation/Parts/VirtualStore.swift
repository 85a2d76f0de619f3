// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// One store of the server, by the rules that ship.
package struct VirtualStore {
    private struct Kept {
        var record: Record
        var revision: Int64
        /// The server's running time at the commit.
        var committed: Int64
    }

    private struct KeptIncrement {
        var increment: FoldedIncrement
        var committed: Int64
        var isCompacted = false
    }

    package private(set) var state = StoreState()
    private var kept: [Key: Kept] = [:]
    package private(set) var history = VirtualHistory()
    /// For checkers; nil if nobody checks.
    package private(set) var log: VersionLog?
    private var folded: [FoldedIncrement.ID: KeptIncrement] = [:]
    /// The newest revision that each device is known to have.
    private(set) var passed: [DeviceID: Int64] = [:]

    init(log: VersionLog? = nil) { self.log = log }

    package var records: [Key: Record] { kept.mapValues(\.record) }

    /// All increments ever folded, for checkers.
    package var increments: [FoldedIncrement] { folded.values.map(\.increment) }

    mutating func admit(
        _ push: Push, by admission: PushAdmission, in epoch: UInt64, running: Int64,
        _ opener: Opener = Opener()
    ) throws(ClockAhead) -> CommittedPush {
        if state.history.exceeds(admission.history, byFar: false) {
            pruneHistory(admission.historyRule)
        }
        let queries = push.foldedQueries(records)
        let known = folded.values.lazy.filter { kept in
            !kept.isCompacted && queries.contains { $0.matches(kept.increment) }
        }
        let admitted = try state.admit(
            push, records: records, folded: known.map(\.increment), by: admission, in: epoch)
        for write in admitted.writes {
            kept[write.key] = Kept(
                record: write, revision: admitted.position.revision, committed: running)
        }
        history.take(admitted)
        log?.take(
            opener.opened(push), opener.opened(admitted.results), opener.opened(admitted.writes),
            at: RecordVersion.Moment(
                revision: admitted.position.revision, milliseconds: admission.now))
        for increment in admitted.folded {
            folded[increment.id] = KeptIncrement(increment: increment, committed: running)
        }
        return admitted
    }

    /// Replaces all records by others that are sealed with the account's key.
    mutating func replace(
        by whole: WholeStore, by admission: PushAdmission, in epoch: UInt64, running: Int64,
        _ opener: Opener
    ) throws(WholeRefusal) {
        _ = try state.replace(by: whole, by: admission, in: epoch)
        let moment = RecordVersion.Moment(
            revision: state.lineage.revision, milliseconds: admission.now)
        kept = [:]
        for record in whole.records {
            kept[record.key] = Kept(
                record: record, revision: moment.revision, committed: running)
        }
        history = VirtualHistory(whole.records, at: moment)
        if log != nil { log = VersionLog(opener.opened(whole.records), at: moment) }
    }

    /// The keys of what a server can read, or an older key opens, although the store is sealed. Counts
    /// of any key are good. Versions of the past may be sealed with none that is older, because they
    /// began with the present one.
    /// - Parameter generation: That of the account.
    func unsealed(with generation: UInt32) -> Set<Key> {
        guard generation > 0, state.contentGeneration == generation else { return [] }
        let records =
            Array(records.values)
            + history.lines(of: nil).map { line, content in
                Record(key: line.key, content: content, stamp: line.stamp)
            }
        return Set(records.lazy.filter { !$0.isSealed(asOf: generation) }.map(\.key))
    }

    func changes(since cursor: Cursor?, now: Int64) throws(LinkFailure) -> ChangeSet {
        var after: Int64 = 0
        if let position = cursor.flatMap(Position.init) {
            switch state.lineage.resumption(from: position) {
            case .after(let revision): after = revision
            case .otherHistory:
                throw LinkFailure(.cursorGone(isOtherHistory: true), "another history")
            case .compacted:
                throw LinkFailure(.cursorGone(isOtherHistory: false), "forgotten deletions")
            }
        }
        let isWhole = cursor == nil
        let records = kept.values.filter {
            $0.revision > after && (!isWhole || $0.record.content.value != nil)
        }
        return ChangeSet(
            records: records.map(\.record).sorted { $0.key < $1.key },
            cursor: state.lineage.position.cursor, serverMilliseconds: now, isWhole: isWhole,
            horizon: state.horizon)
    }

    /// - Parameter key: Nil for the whole store.
    func deliveryRule(of key: Key?) -> DeliveryRule {
        DeliveryRule(
            kept.filter { key == nil || $0.key.whole == key }.values.map {
                DeliveryRule.Item(revision: $0.revision, author: $0.record.stamp.device)
            }, in: state.lineage)
    }

    /// Records that a device has everything up to this revision. Not the maximum of earlier ones: a
    /// device restored from its own backup has less.
    mutating func pass(_ revision: Int64, by device: DeviceID) { passed[device] = revision }

    /// - Parameter isLive: Whether a device was seen recently.
    mutating func compact(
        _ rule: CompactionRule, running: Int64, isLive: (DeviceID) -> Bool
    ) -> [Record] {
        let deletions = kept.values.filter { $0.record.content == .deleted }
            .sorted { $0.revision < $1.revision }
        let live = passed.filter { isLive($0.key) }
        let known = deletions.map {
            CompactionRule.Tombstone(
                revision: $0.revision, committed: $0.committed,
                timestamp: $0.record.stamp.timestamp,
                weight: $0.record.key.tombstoneWeight)
        }
        let dropped = state.compact(
            known, by: rule, passed: live.values.min(), running: running)
        let compacted = deletions.prefix(dropped?.count ?? 0)
        for entry in compacted {
            kept[entry.record.key] = nil
            history.compact(entry.record.key)
            log?.compact(entry.record.key)
        }
        return compacted.map(\.record)
    }

    /// Some versions, those that came last first.
    /// - Parameters:
    ///   - key: The key whose versions, and those of its parts, are listed; nil for all keys.
    ///   - place: Where the page before said that this one begins; nil for the first one.
    package func page(
        of key: Key?, from place: String?, max: Int, by rule: HistoryRule
    ) -> HistoryPage {
        let lines = history.lines(of: key)
        let (chosen, next) = rule.page(
            of: lines.map(\.line), after: place.flatMap(HistoryRule.Place.init), max: max,
            bytesMax: .max)
        return HistoryPage(
            versions: chosen.compactMap { lines[$0].line.version(lines[$0].content) },
            next: next?.description, serverMilliseconds: rule.now)
    }

    package func snapshot(
        at time: HistoryRule.Time, by rule: HistoryRule
    ) throws(HistoryForgotten) -> StoreSnapshot {
        let lines = history.lines(of: nil)
        let snapshot = try rule.snapshot(of: lines.map(\.line), at: time, in: state)
        return StoreSnapshot(
            records: snapshot.chosen.map { place in
                let (line, content) = lines[place]
                return Record(key: line.key, content: content, stamp: line.stamp)
            }, revision: snapshot.revision, forgottenKeys: snapshot.forgotten,
            serverMilliseconds: rule.now)
    }

    mutating func pruneHistory(_ rule: HistoryRule) { _ = history.prune(rule, &state.history) }

    /// Drops increments that were folded long ago.
    mutating func compactFolded(_ rule: CompactionRule, running: Int64) {
        let known = folded.values.filter { !$0.isCompacted }
            .sorted { $0.increment.mark < $1.increment.mark }
        let dropped = state.compactFolded(
            known.map { kept in
                CompactionRule.Tombstone(
                    revision: kept.increment.mark.revision, committed: kept.committed,
                    timestamp: kept.increment.timestamp)
            }, by: rule, running: running)
        for kept in known.prefix(dropped?.count ?? 0) {
            folded[kept.increment.id]?.isCompacted = true
        }
    }
}

extension Record {
    /// Whether no server can read it, and no older key opens it. Independently of the code.
    package func isSealed(asOf generation: UInt32) -> Bool {
        switch content {
        case .deleted: true
        case .value(.sealed(let box)): box.generation == generation || box.bytes.first == 2
        case .value: false
        }
    }
}
