// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The server's rules for a sealed account, which has no keys.
@Suite struct `The server of a sealed account` {
    private static let now: Int64 = 1_800_000_000_000
    private static let keyring = Keyring([
        1: .account(Bytes32([UInt8](repeating: 1, count: 32))!),
        2: .account(Bytes32([UInt8](repeating: 2, count: 32))!),
    ])

    private static func sealer(_ generation: UInt32 = 1) -> Sealer {
        let roots = keyring.roots.filter { $0.key <= generation }
        return Keyring(roots).sealer(of: try! StoreIdentifier("notes"))!
    }

    private func record(
        _ key: String, _ value: PropertyListValue?, part: String? = nil, at offset: Int64 = 0,
        device: UInt64 = 1
    ) throws -> Record {
        let whole = try Key(key)
        return Record(
            key: part.map { whole.part(PartID($0)!) } ?? whole,
            content: value.map(Content.value) ?? .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: Self.now + offset), DeviceID(rawValue: device)))
    }

    private func admission(_ generation: UInt32, partsMax: Int = 60) -> PushAdmission {
        var admission = PushAdmission(limits: StoreLimits(), now: Self.now, partsMax: partsMax)
        admission.generation = generation
        return admission
    }

    private func result(_ record: Record, in generation: UInt32) throws -> TransactionResult {
        try admission(generation).decide(Push([Transaction([record])]), on: PushAdmission.Stored())
            .results[0]
    }

    /// A store with its records.
    private struct Stored {
        var state = StoreState()
        var records: [Key: Record] = [:]
        var folded: [FoldedIncrement.ID: FoldedIncrement] = [:]

        @discardableResult
        mutating func push(
            _ writes: [Record], by admission: PushAdmission, epoch: UInt64 = 7
        ) throws -> CommittedPush {
            let push = Push([try Transaction(writes)])
            let committed = try state.admit(
                push, records: records, folded: Array(folded.values), by: admission, in: epoch)
            for record in committed.writes { records[record.key] = record }
            for increment in committed.folded { folded[increment.id] = increment }
            return committed
        }
    }

    // MARK: - What it takes

    @Test func `takes deletions, boxes of its generation and counts, and nothing else`() throws {
        let value = PropertyListValue.string("secret")
        let count = PropertyListValue.array([.integer(1), .integer(5)])
        let applied = TransactionResult.committed([.applied])
        let box = Self.sealer().seal(try record("a", value))
        let sum = Self.sealer().seal(try record("a", count, part: "cx"))
        for good in [box, sum, try record("a", nil)] { #expect(try result(good, in: 1) == applied) }
        func altered(
            _ record: Record, generation: UInt32 = 1, _ alter: (inout [UInt8]) -> Void = { _ in }
        ) -> Record {
            guard case .value(.sealed(let box)) = record.content else { return record }
            var (record, bytes) = (record, box.bytes)
            alter(&bytes)
            record.content = .value(.sealed(SealedBox(generation: generation, bytes: bytes)))
            return record
        }
        var elsewhere = sum
        elsewhere.key = try Key("a")
        let bad = [
            try record("a", value), try record("a", count, part: "cx"), elsewhere,
            altered(box, generation: 2), altered(box, generation: 0), altered(box) { $0 = [] },
            altered(box) { $0[0] = 3 }, altered(box) { $0.removeLast($0.count - 48) },
            altered(sum) { $0[9] = 7 }, altered(sum) { $0.removeLast() },
        ]
        for record in bad { #expect(try result(record, in: 1) == .refused(.notSealed)) }
        #expect(try result(box, in: 0) == .refused(.sealed))
        #expect(try result(altered(box, generation: 0), in: 0) == .refused(.sealed))
        // Under a count's part, anything but a count is in a box.
        let strange = Self.sealer().seal(try record("a", value, part: "cx"))
        #expect(try result(strange, in: 1) == applied)
    }

    @Test func `compares boxes by their times, also where clear values decide`() throws {
        var stored = Stored()
        let high = Self.sealer().seal(try record("a", .integer(9), part: "xr"))
        let low = Self.sealer().seal(try record("a", .integer(1), part: "xr", at: 5))
        try stored.push([high], by: admission(1))
        try stored.push([low], by: admission(1))
        #expect(stored.records[low.key] == low)
    }

    @Test func `takes all that fits in clear, and counts no box as more than its value`() throws {
        var limits = StoreLimits()
        limits.valueBytesMax = 1_000
        limits.storeBytesMax = 1_000
        var admission = admission(1)
        admission.limits = limits
        for size in [0, 1, 7, 100, 500, 999, 1_000] {
            let value = PropertyListValue.data([UInt8](repeating: 7, count: size))
            let clear = try record("a", value)
            let decision = try admission.decide(
                Push([Transaction([Self.sealer().seal(clear)])]), on: PushAdmission.Stored())
            #expect(decision.results == [.committed([.applied])])
            #expect(decision.usage.bytes <= max(value.quotaBytes, 1))
        }
    }

    @Test func `adds counts up, in a sum that devices open`() throws {
        var stored = Stored()
        let key = try Key("k")
        for run in 0..<3 {
            let count = PropertyListValue.array([.integer(1), .integer(Int64(run) + 1)])
            let write = try record("k", count, part: "c\(run)", at: Int64(run))
            try stored.push([Self.sealer().seal(write)], by: admission(1, partsMax: 0))
        }
        let sum = try #require(stored.records[key.part(.fold)])
        var elements = 100
        guard
            case .opened(let opened) = Self.sealer().open(
                sum, within: &elements)
        else {
            Issue.record("the sum does not open")
            return
        }
        #expect(
            Count(opened.content.value)?.total == Count(.array([.integer(0), .integer(6)]))?.total)
        // A removal of the sum is a sum, too.
        guard let seen = Count(opened.content.value) else { return }
        let removal = Record(
            key: key.part(PartID.fold.removal), content: .value(seen.removal.value),
            stamp: Stamp(
                HybridTimestamp(milliseconds: Self.now + 50), DeviceID(rawValue: 2)))
        try stored.push([Self.sealer().seal(removal)], by: admission(1, partsMax: 0))
        for record in stored.records.values {
            #expect(record.content.isSealed || record.content == .deleted)
        }
        // Counts of another generation: the sum has the seal of the greater one.
        let later = try record(
            "k", .array([.integer(1), .integer(10)]), part: "cz", at: 60)
        try stored.push([Self.sealer(2).seal(later)], by: admission(2, partsMax: 0))
        guard case .value(.sealed(let box)) = stored.records[key.part(.fold)]?.content else {
            Issue.record("the sum is not sealed")
            return
        }
        #expect(box.generation == 2)
    }

    // MARK: - A whole store

    private func sealedStore() throws -> (Stored, WholeStore) {
        var stored = Stored()
        try stored.push([record("a", .integer(1)), record("b", .integer(2))], by: admission(0))
        try stored.push([record("b", nil, at: 5)], by: admission(0))
        let whole = WholeStore(
            cursor: stored.state.lineage.position.cursor, generation: 1,
            records: [Self.sealer().seal(try record("a", .integer(1)))])
        return (stored, whole)
    }

    @Test func `is not readable with a key that did not seal it, unless there is nothing`() throws {
        var (stored, whole) = try sealedStore()
        #expect(stored.state.isReadable(with: 0) && !stored.state.isReadable(with: 1))
        _ = try stored.state.replace(by: whole, by: admission(1), in: 7)
        #expect(!stored.state.isReadable(with: 0) && stored.state.isReadable(with: 1))
        #expect(!stored.state.isReadable(with: 2))
        #expect(StoreState().isReadable(with: 3))
    }

    @Test func `replaces a store, and forgets what was before`() throws {
        var (stored, whole) = try sealedStore()
        let before = stored.state
        _ = try stored.state.replace(by: whole, by: admission(1), in: 7)
        let state = stored.state
        #expect(state.generation == 1)
        #expect(state.lineage.revision == before.lineage.revision + 1)
        #expect(state.lineage.resumption(from: before.lineage.position) == .compacted)
        #expect(state.lineage.resumption(from: Position(epoch: 0, revision: 0)) == .compacted)
        #expect(state.lineage.resumption(from: state.lineage.position) == .after(3))
        #expect(state.usage.keys == 1 && state.deletions == 0)
        #expect(state.accepted == before.accepted && state.folded == before.folded)
        #expect(state.newestCompacted == before.newest && state.horizon == before.newest)
        #expect(state.history.bytes == 0 && state.history.floor.revision == 3)
        // What a device had and the store does not list does not come back.
        stored.records = [:]
        let old = Self.sealer().seal(try record("b", .integer(2)))
        #expect(
            try stored.push([old], by: admission(1)).results == [.refused(.olderThanCompacted)])
        let new = Self.sealer().seal(try record("b", .integer(3), at: 9))
        #expect(try stored.push([new], by: admission(1)).results == [.committed([.applied])])
    }

    @Test func `replaces no store that has changed, or has that key, or for another key`() throws {
        let (stored, whole) = try sealedStore()
        func refusal(
            _ generation: UInt32 = 1, _ change: (inout WholeStore, inout Stored) throws -> Void
        ) throws -> WholeRefusal? {
            var (stored, whole) = (stored, whole)
            try change(&whole, &stored)
            let before = stored.state
            do throws(WholeRefusal) {
                _ = try stored.state.replace(by: whole, by: admission(generation), in: 7)
                return nil
            } catch {
                #expect(stored.state == before)
                return error
            }
        }
        let changed = WholeRefusal.sealing(.storeChanged)
        #expect(try refusal { _, _ in } == nil)
        #expect(
            try refusal { _, stored in
                try stored.push([record("c", .integer(3), at: 6)], by: admission(0))
            } == changed)
        #expect(
            try refusal { whole, stored in
                _ = try stored.state.replace(by: whole, by: admission(1), in: 7)
                whole.cursor = stored.state.lineage.position.cursor
            } == changed)
        #expect(try refusal { _, stored in stored = Stored() } == changed)
        #expect(
            try refusal(2) { _, _ in } == .sealing(.otherGeneration(2, asked: 1)))
        #expect(
            try refusal { whole, _ in whole.records = [try record("a", .integer(1))] }
                == .record(0, .notSealed))
        #expect(
            try refusal { whole, _ in whole.records.append(try record("a", nil, at: 3)) }
                == .record(1, .notSealed))
        #expect(
            try refusal { whole, _ in whole.records += whole.records } == .record(1, .repeated))
        #expect(
            try refusal { whole, _ in
                whole.records[0].stamp.timestamp = HybridTimestamp(
                    milliseconds: Self.now + 999_999)
            } == .clockAhead(ClockAhead(serverMilliseconds: Self.now)))
        #expect(
            try refusal { whole, _ in
                let value = PropertyListValue.data([UInt8](repeating: 0, count: 700_000))
                whole.records = try ["d", "e"].map { Self.sealer().seal(try record($0, value)) }
            }.map { if case .tooLarge = $0 { true } else { false } } == true)
    }

    @Test func `replaces a store that is over limits which were lowered since`() throws {
        var stored = Stored()
        let all =
            try (0..<100).map { number in
                try record("a", .boolean(true), part: "d\(number)", at: Int64(number))
            } + [record("key", .string("a value"), at: 100)]
        try stored.push(all, by: admission(0))
        let whole = WholeStore(
            cursor: stored.state.lineage.position.cursor, generation: 1,
            records: try Self.sealer().sealWhole(
                ChangeSet(records: all, cursor: Cursor("c")!, serverMilliseconds: 0, isWhole: true),
                by: .unassigned, latest: .max, run: 7
            ).records)
        var admission = admission(1)
        admission.limits.storeBytesMax = 10
        (admission.limits.valueBytesMax, admission.limits.keysMax) = (1, 1)
        admission.limits.key = .utf8Bytes(1)
        let before = stored.state.usage
        _ = try stored.state.replace(by: whole, by: admission, in: 7)
        #expect(stored.state.usage.bytes > before.bytes && stored.state.usage.keys == before.keys)
    }

    @Test func `keeps what it has folded: a late count still finds its run`() throws {
        var stored = Stored()
        func count(_ times: Int64, _ total: Int64, at offset: Int64) throws -> Record {
            try record("k", .array([.integer(times), .integer(total)]), part: "cr", at: offset)
        }
        try stored.push([count(1, 5, at: 0)], by: admission(0, partsMax: 0))
        let fold = try #require(stored.records[try Key("k").part(.fold)])
        let whole = WholeStore(
            cursor: stored.state.lineage.position.cursor, generation: 1,
            records: [Self.sealer().seal(fold)])
        _ = try stored.state.replace(by: whole, by: admission(1), in: 7)
        stored.records = [fold.key: whole.records[0]]
        try stored.push([Self.sealer().seal(count(2, 8, at: 9))], by: admission(1))
        let sum = Count(stored.records[fold.key]?.content.value)
        #expect(sum?.total == Count(.array([.integer(0), .integer(8)]))?.total)
        #expect(sum?.seal?.generation == 1)
    }

    @Test func `is as new after a reset, and takes nothing back`() throws {
        var (stored, whole) = try sealedStore()
        _ = try stored.state.replace(by: whole, by: admission(1), in: 7)
        let before = stored.state
        _ = stored.state.reset(at: Self.now, in: 7)
        #expect(stored.state.contentGeneration == nil && stored.state.generation == 0)
        #expect(stored.state.lineage.resumption(from: before.lineage.position) == .compacted)
        stored.records = [:]
        let old = try record("a", .integer(1))
        #expect(
            try stored.push([old], by: admission(0)).results == [.refused(.olderThanCompacted)])
        #expect(
            try stored.push([record("a", .integer(2), at: 9)], by: admission(0)).results
                == [.committed([.applied])])
    }
}
