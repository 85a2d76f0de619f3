// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// A version in a store's history, or a current record, in its stored form.
struct StoredVersion: Hashable, Sendable {
    var line: HistoryRule.Line
    /// A protocol message with the value; nil for a tombstone.
    var value: Data?

    /// The approximate size in memory.
    var bytes: Int { line.bytes }

    /// - Throws: ``StorageError/unreadable``.
    func version() throws(StorageError) -> RecordVersion {
        guard let version = line.version(try record().content) else { throw .unreadable }
        return version
    }

    /// - Throws: ``StorageError/unreadable``.
    func record() throws(StorageError) -> Record {
        try StoredRecord(key: Data(line.key.bytes), stamp: line.stamp, value: value).record()
    }
}

/// A record that a store holds, with what it needs to become a version when another one replaces it.
struct HeldRecord: Sendable {
    var record: Record
    /// The store's revision with which it came.
    var revision: Int64
    /// When it came, in milliseconds since 1970; nil if it must not be kept.
    var came: Int64?

    /// The record as a version, or a note in its place if it must not be kept.
    func version(replaced ended: RecordVersion.Moment, by stamp: Stamp) -> VersionRow {
        guard let came else { return VersionRow(forgotten: record.key, before: ended) }
        return VersionRow(
            StoredRecord(record),
            came: RecordVersion.Moment(revision: revision, milliseconds: came), replaced: ended,
            by: stamp)
    }
}

extension HeldRecord {
    init(_ record: Record, of push: CommittedPush) {
        self.init(
            record: record, revision: push.position.revision, came: push.history.came(record))
    }
}

/// The stored form of ``HistoryRule/Line/Fate``, of a line that is not current.
enum StoredFate: Int64 {
    case replaced = 0
    case lost = 1
    case forgotten = 2

    func fate(_ ended: RecordVersion.Moment, by stamp: Stamp) -> HistoryRule.Line.Fate {
        switch self {
        case .replaced: .replaced(ended, by: stamp)
        case .lost: .lost(ended, by: stamp)
        case .forgotten: .forgotten(ended)
        }
    }
}

extension HistoryRule.Line {
    /// - Parameter valueBytes: The size of the stored value; nil for a tombstone.
    /// - Throws: ``StorageError/unreadable`` if these are not a key's bytes.
    init(
        keyBytes: some ContiguousBytes & Collection, stamp: Stamp, came: RecordVersion.Moment,
        fate: Fate, valueBytes: Int?
    ) throws(StorageError) {
        let key: Key
        do { key = try keyBytes.withUnsafeBytes { try Key(bytes: $0) } } catch { throw .unreadable }
        self.init(
            key: key, stamp: stamp, came: came, fate: fate, isDeletion: valueBytes == nil,
            bytes: HistoryRule.bytes(key: keyBytes.count, value: valueBytes ?? 0))
    }
}

extension HistoryRule.Line {
    /// - Parameters:
    ///   - row: The columns `key`, `time`, `device`, `digest`, `revision`, `came`, and the length of
    ///     the value; of a version also `outcome`, `ended`, `ended_ms`, `by_time` and `by_device`.
    ///   - index: The first of them.
    ///   - isCurrent: Whether the row is a record's.
    /// - Throws: ``StorageError/unreadable``.
    init(
        _ row: some ColumnReading, from index: Int, isCurrent: Bool
    ) throws(StorageError) {
        let came = row.isNull(index + 5) ? nil : try row.time(index + 5)
        let fate: Fate
        if isCurrent {
            fate = .current(isKept: came != nil)
        } else {
            guard let stored = StoredFate(rawValue: try row.integer(index + 7)) else {
                throw .unreadable
            }
            let ended = RecordVersion.Moment(
                revision: try row.revision(index + 8), milliseconds: try row.time(index + 9))
            let by = Stamp(try row.timestamp(index + 10), try row.device(index + 11))
            fate = stored.fate(ended, by: by)
        }
        try self.init(
            keyBytes: try row.bytes(index), stamp: try row.stamp(index + 1),
            came: RecordVersion.Moment(
                revision: try row.revision(index + 4), milliseconds: came ?? 0),
            fate: fate, valueBytes: row.isNull(index + 6) ? nil : try row.count(index + 6))
    }
}

/// A row of `version`.
struct VersionRow: Hashable, Sendable {
    var key: Data
    var stamp: Stamp
    var value: Data?
    var came: RecordVersion.Moment
    var ended: RecordVersion.Moment
    var by: Stamp
    var fate: StoredFate

    /// A write that a push brought, and that the store does not hold.
    init(_ write: PushAdmission.PassingWrite, at moment: RecordVersion.Moment) {
        let record = StoredRecord(write.record)
        (key, stamp, value) = (record.key, record.stamp, record.value)
        (came, ended, by) = (moment, moment, write.by)
        fate = write.isLost ? .lost : .replaced
    }

    /// A record that the store held.
    init(
        _ record: StoredRecord, came: RecordVersion.Moment, replaced ended: RecordVersion.Moment,
        by stamp: Stamp
    ) {
        (key, self.stamp, value) = (record.key, record.stamp, record.value)
        (self.came, self.ended, by, fate) = (came, ended, stamp, .replaced)
    }

    /// The note that what an entry was before is not known.
    init(forgotten key: Key, before moment: RecordVersion.Moment) {
        self.key = Data(key.bytes)
        (stamp, by) = (Stamp(.zero, .unassigned), Stamp(.zero, .unassigned))
        (came, ended, fate) = (.start, moment, .forgotten)
    }

    /// A note that pruning has made.
    init?(note line: HistoryRule.Line) {
        guard let ended = line.ended else { return nil }
        self.init(forgotten: line.key, before: ended)
        (stamp, came) = (line.stamp, line.came)
    }
}
