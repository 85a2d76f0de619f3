// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// The part of a full store that is made, and compared with the same part of its limits: everything
/// grows with the number of bytes and records.
private let share = 8

/// The size of a store at its limits is a small multiple of them, whatever it contains. The figures
/// of full stores are in docs/RELIABILITY.md, measured by `scripts/attack --sizes`.
struct StoreSizeTests {
    fileprivate static let limit = StoreLimits().storeBytesMax / share

    enum Filling: CaseIterable {
        case string, controlCharacters, booleans, emptyStrings, reals, longKeys, parts, tombstones
        case folds

        var records: [UbiquityCore.Record] {
            let bytes = StoreSizeTests.limit
            return switch self {
            case .string: [one(.string(text("x", bytes)))]
            case .controlCharacters: [one(.string(text("\u{1}", bytes)))]
            case .booleans: [one(.array(Array(repeating: .boolean(true), count: bytes / 9)))]
            case .emptyStrings: [one(.array(Array(repeating: .string(""), count: bytes / 8)))]
            case .reals:
                [one(.array(Array(repeating: .real(-.leastNormalMagnitude), count: bytes / 16)))]
            case .longKeys:
                (0..<1_024 / share).map {
                    Sample.record(key($0), .string(text("x", 1_024)), at: 500)
                }
            case .parts:
                (0..<StoreLimits.partsMax / share).map {
                    part("e\($0)" + pad(41), $0, .string(""))
                }
            case .tombstones: (0..<16_384 / share).map { Sample.record(key($0), nil, at: 500) }
            case .folds:
                (0..<50_000 / share).map {
                    part("c\($0)", $0, .array([.integer(1), .integer(1)]))
                }
            }
        }

        private func one(_ value: PropertyListValue) -> UbiquityCore.Record {
            Sample.record("k", value, at: 500)
        }

        private func text(_ character: Character, _ count: Int) -> ExactString {
            ExactString(String(repeating: character, count: count))
        }

        private func pad(_ count: Int) -> String { String(repeating: "x", count: count) }
        private func key(_ number: Int) -> String { "\(100_000 + number)" + pad(58) }

        private func part(
            _ name: String, _ number: Int, _ value: PropertyListValue
        ) -> UbiquityCore.Record {
            var record = Sample.record(key(0), value, at: 500)
            record.key = record.key.part(PartID(name)!)
            return record
        }
    }

    @Test(arguments: Filling.allCases)
    func `a full store is a small multiple of its limits`(filling: Filling) throws {
        let folder = try TemporaryFolder()
        let storage = try Backend.sqlite.open(in: folder)
        let before = try pages(of: storage)
        try storage.commit(Sample.push(Sample.record("first", nil, at: 1)))
        for slice in filling.records.chunks(of: 8_192 / share) {
            let push = Push(try slice.map { try Transaction([$0]) })
            let commit = try storage.commit(PendingPush(store: Sample.store, push: push))
            #expect(
                try #require(commit).results.allSatisfy {
                    if case .committed = $0 { true } else { false }
                })
        }
        let limit = Self.limit
        // Increments that were folded have a bound of their own, and until the next compaction the
        // deletions of their parts.
        let isFolded = filling == .folds
        let pages = try pages(of: storage) - before
        #expect(pages < (isFolded ? 32 : 6) * limit)
        let read = try storage.read(Sample.store, since: Sample.position(1))
        guard case .changes(let records, let position, _, _) = read else {
            return #expect(Bool(false))
        }
        #expect(records.reduce(0) { $0 + $1.bytes } < (isFolded ? 7 : 5) * limit)
        let head = ChangeSet(
            records: [], cursor: position.cursor, serverMilliseconds: 1, isWhole: false)
        for format in WireFormat.allCases {
            var encoder = WireListEncoder(format)
            var bytes = encoder.end(head).count
            for record in records { bytes += encoder.encode(try record.record()).count }
            #expect(bytes < (format == .json ? 7 : 3) * limit + (isFolded ? 2 : 0) * limit)
        }
        try storage.close()
    }

    private func pages(of storage: any ServerStorage) throws -> Int {
        let sqlite = try #require(storage as? SQLiteServerStorage)
        return try sqlite.database.read { db in
            let count = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            return try count * (Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0)
        }
    }
}

extension Array {
    fileprivate func chunks(of count: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: self.count, by: count).map {
            self[$0..<Swift.min($0 + count, self.count)]
        }
    }
}
