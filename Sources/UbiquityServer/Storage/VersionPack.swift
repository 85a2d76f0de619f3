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
        ended = try rows().last?.ended ?? .start
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
        var rows: [VersionRow] = []
        var numbers = StoredNumbers(Array(bytes))
        while !numbers.isAtEnd { rows.append(try VersionRow(&numbers)) }
        return rows
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

    fileprivate init(_ numbers: inout StoredNumbers) throws(StorageError) {
        guard let fate = StoredFate(rawValue: try numbers.revision()) else { throw .unreadable }
        self.fate = fate
        key = try numbers.data()
        stamp = Stamp(
            try numbers.timestamp(), DeviceID(rawValue: try numbers.next()),
            digest: try numbers.next())
        came = try numbers.moment()
        ended = try numbers.moment()
        by = Stamp(try numbers.timestamp(), DeviceID(rawValue: try numbers.next()))
        value = try numbers.next() == 0 ? nil : try numbers.data()
    }
}
