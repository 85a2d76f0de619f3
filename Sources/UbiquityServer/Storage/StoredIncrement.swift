// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The stored form of an increment of a folded count: the name of its run's part, and numbers.
extension FoldedIncrement {
    /// `run`, and those of the ``numbers``.
    static let columns = "run, since, times, amount, total, reals, mark, removed, time"

    /// The name of a run's part.
    static func data(_ run: Key) -> Data { Data((run.part?.text.string ?? "").utf8) }

    /// `reals` says which of the amount (1) and the total (2) are the bits of reals.
    var numbers: [Int64] {
        [
            after, times, Self.bits(amount), Self.bits(total),
            (Self.isReal(amount) ? 1 : 0) | (Self.isReal(total) ? 2 : 0), mark.rawValue,
            isRemoved ? 1 : 0, Int64(bitPattern: timestamp.rawValue),
        ]
    }

    /// - Parameter index: The first of the ``columns``.
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading, from index: Int, of key: Key) throws(StorageError) {
        guard let part = PartID(String(decoding: try row.bytes(index), as: UTF8.self)) else {
            throw .unreadable
        }
        let reals = try row.integer(index + 5)
        self.init(
            run: key.part(part), after: try row.integer(index + 1),
            times: try row.integer(index + 2),
            amount: Self.number(try row.bits(index + 3), isReal: reals & 1 != 0),
            total: Self.number(try row.bits(index + 4), isReal: reals & 2 != 0),
            mark: FoldMark(rawValue: try row.integer(index + 6)),
            isRemoved: try row.integer(index + 7) != 0, timestamp: try row.timestamp(index + 8))
    }

    private static func bits(_ number: Number) -> Int64 {
        switch number.value {
        case .integer(let value): value
        case .real(let value): Int64(bitPattern: value.bitPattern)
        default: 0
        }
    }

    private static func isReal(_ number: Number) -> Bool {
        if case .real = number.value { true } else { false }
    }

    private static func number(_ bits: UInt64, isReal: Bool) -> Number {
        let value: PropertyListValue =
            isReal ? .real(Double(bitPattern: bits)) : .integer(Int64(bitPattern: bits))
        return Number(value) ?? .zero
    }
}

extension CompactionRule.Tombstone {
    /// - Parameter row: Of a deleted record, `revision`, `committed`, `time` and the length of the key.
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading) throws(StorageError) {
        self.init(
            revision: try row.revision(0), committed: try row.time(1),
            timestamp: try row.timestamp(2), weight: Key.tombstoneWeight(bytes: try row.count(3)))
    }

    /// - Parameter row: Of an increment of a folded count, `mark`, `committed` and `time`.
    /// - Throws: ``StorageError/unreadable``.
    init(increment row: some ColumnReading) throws(StorageError) {
        self.init(
            revision: FoldMark(rawValue: try row.integer(0)).revision,
            committed: try row.time(1), timestamp: try row.timestamp(2))
    }
}
