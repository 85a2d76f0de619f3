// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// Versions of a store in one value, one after the other in the order of their ends.
///
/// The newest of a store are in its head, which every push writes anyway. A row of `version` is one more
/// page to write, or several when that is full; so they become rows when the head is full, and many of
/// them one row.
struct VersionPack: Hashable, Sendable {
    private(set) var bytes: [UInt8] = []
    /// The end of the last version.
    private(set) var ended = RecordVersion.Moment.start

    init() {}

    /// - Throws: ``StorageError/unreadable``.
    init(_ bytes: some Sequence<UInt8>) throws(StorageError) {
        self.bytes = Array(bytes)
        for version in try Self.versions(self.bytes) { ended = version.ended }
    }

    var isEmpty: Bool { bytes.isEmpty }

    /// - Returns: Whether there was room for the version, as there is in an empty pack.
    mutating func append(_ row: VersionRow) -> Bool {
        var added: [UInt8] = []
        added.reserveCapacity(128)
        func add(_ stamp: Stamp) {
            added.append(number: stamp.timestamp.rawValue)
            added.append(number: stamp.device.rawValue)
        }
        added.append(number: UInt64(row.fate.rawValue))
        added.append(row.key)
        add(row.stamp)
        added.append(number: row.stamp.digest)
        added.append(row.came)
        added.append(row.ended)
        add(row.by)
        added.append(number: row.value == nil ? 0 : 1)
        if let value = row.value { added.append(value) }
        guard isEmpty || bytes.count + added.count <= StoreHead.bytesMax else { return false }
        bytes += added
        ended = row.ended
        return true
    }

    /// - Throws: ``StorageError/unreadable`` if a key or a value is.
    func check() throws(StorageError) {
        for row in try rows() {
            _ = try StoredRecord(key: row.key, stamp: row.stamp, value: row.value).record()
        }
    }

    /// - Throws: ``StorageError/unreadable``, but never for what was appended here.
    func rows() throws(StorageError) -> [VersionRow] { try Self.rows(bytes) }

    /// The versions in the bytes of a pack.
    /// - Throws: ``StorageError/unreadable``.
    static func rows(_ bytes: some Sequence<UInt8>) throws(StorageError) -> [VersionRow] {
        let bytes = Array(bytes)
        return try versions(bytes).map { VersionRow($0, in: bytes) }
    }

    /// A version in the bytes of a pack, which has its key and its value.
    struct Version {
        let fate: StoredFate
        let key: Range<Int>
        let stamp: Stamp
        let came: RecordVersion.Moment
        let ended: RecordVersion.Moment
        let by: Stamp
        /// Nil for a tombstone.
        let value: Range<Int>?

        fileprivate init(_ numbers: inout StoredNumbers) throws(StorageError) {
            guard let fate = StoredFate(rawValue: try numbers.revision()) else { throw .unreadable }
            self.fate = fate
            key = try numbers.range()
            stamp = Stamp(
                try numbers.timestamp(), DeviceID(rawValue: try numbers.next()),
                digest: try numbers.next())
            came = try numbers.moment()
            ended = try numbers.moment()
            by = Stamp(try numbers.timestamp(), DeviceID(rawValue: try numbers.next()))
            value = try numbers.next() == 0 ? nil : try numbers.range()
        }

        /// - Throws: ``StorageError/unreadable`` if the key is none.
        func line(in bytes: [UInt8]) throws(StorageError) -> HistoryRule.Line {
            try HistoryRule.Line(
                keyBytes: bytes[key], stamp: stamp, came: came, fate: fate.fate(ended, by: by),
                valueBytes: value?.count)
        }
    }

    /// - Throws: ``StorageError/unreadable``.
    static func versions(_ bytes: [UInt8]) throws(StorageError) -> [Version] {
        var versions: [Version] = []
        versions.reserveCapacity(bytes.count / 64)
        var numbers = StoredNumbers(bytes)
        while !numbers.isAtEnd { versions.append(try Version(&numbers)) }
        return versions
    }
}

extension VersionRow {
    /// The row of a pack, under the empty key, which no version has. Its digest is random: packs of one
    /// push have the same end.
    init(_ pack: VersionPack) {
        key = Data()
        stamp = Stamp(.zero, .unassigned, digest: .random(in: 0 ... .max))
        value = Data(pack.bytes)
        (came, ended) = (.start, pack.ended)
        (by, fate) = (Stamp(.zero, .unassigned), .replaced)
    }

    init(_ version: VersionPack.Version, in bytes: [UInt8]) {
        key = Data(bytes[version.key])
        value = version.value.map { Data(bytes[$0]) }
        (stamp, by, fate) = (version.stamp, version.by, version.fate)
        (came, ended) = (version.came, version.ended)
    }
}
