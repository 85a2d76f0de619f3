// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// The smallest histories of keys whose writes merge, of each policy one that breaks its promise, and
/// one that keeps it.
struct MergeCheckerTests {
    private let key: Key
    private let disk = DiskReference(device: 1, folder: "1", store: 0)
    private let store = StoreReference(account: 1, store: 0)

    init() throws { key = try Key("p") }

    /// Acknowledged by the disk, and then all should agree.
    private func complaint(
        _ policy: MergePolicy, _ acts: [(number: Int, act: AppOperation.Act)],
        parts: [String: PropertyListValue], plain: PropertyListValue? = nil,
        shown: PropertyListValue?, folded: [FoldedIncrement] = [],
        besides more: [Observation] = []
    ) throws -> String? {
        let done = acts.map { number, act in
            Observation.merged(
                AppOperation(
                    number: number, process: 1, disk: disk, key: key, act: act, seen: nil))
        }
        let start: [Observation] = [
            .signedIn(device: 1, folder: "1", account: 1),
            .opened(process: 1, disk: disk, values: [:]),
        ]
        return UbiquitySimulationTests.complaint(
            MergeChecker(policies: [key: policy]),
            start + done + more + [
                .synchronized(process: 1), try settled(parts, plain, shown, folded),
            ])
    }

    private func settled(
        _ parts: [String: PropertyListValue], _ plain: PropertyListValue?,
        _ shown: PropertyListValue?, _ folded: [FoldedIncrement]
    ) throws -> Observation {
        var records: [Key: Record] = [:]
        func put(_ value: PropertyListValue, under key: Key) {
            records[key] = Record(
                key: key, content: .value(value),
                stamp: Stamp(HybridTimestamp(milliseconds: 1), DeviceID(rawValue: 1)))
        }
        for (name, value) in parts { put(value, under: key.part(try #require(PartID(name)))) }
        if let plain { put(plain, under: key) }
        var merged: [Key: PropertyListValue] = [:]
        merged[key] = shown
        return .settled(
            Settlement(
                server: [store: records], folded: [store: folded],
                processes: [
                    Settlement.Process(
                        number: 1, disk: disk, account: 1, values: [:], waiting: [],
                        isConnected: true, onDisk: [:], merged: merged)
                ]))
    }

    private func value(_ number: Int) -> PropertyListValue { AppOperation.value(number) }

    private func count(_ times: Int64, _ total: Int64) -> PropertyListValue {
        .array([.integer(times), .integer(total)])
    }

    @Test func `a count that was acknowledged is neither less nor more`() throws {
        let run = try #require(PartID("c1"))
        let acts: [(Int, AppOperation.Act)] = [
            (1, .count(part: run, times: 1, amount: 2)),
            (2, .count(part: run, times: 2, amount: 3)),
        ]
        func counted(_ times: Int64, _ total: Int64, shown: Int64) throws -> String? {
            try complaint(
                .counter, acts, parts: ["c1": count(times, total)], shown: .integer(shown))
        }
        #expect(try counted(2, 5, shown: 5) == nil)
        #expect(try counted(1, 2, shown: 2) != nil)
        #expect(try counted(3, 8, shown: 8) != nil)
        #expect(try counted(2, 5, shown: 7) != nil)
    }

    @Test func `a removal undoes what its author had seen of a counter, and nothing else`() throws {
        let run = try #require(PartID("c1"))
        let acts: [(Int, AppOperation.Act)] = [
            (1, .count(part: run, times: 1, amount: 2)),
            (2, .erase(seen: [key.part(run): count(1, 2)])),
            (3, .count(part: run, times: 2, amount: 3)),
        ]
        let part = count(2, 5)
        func shown(_ shown: Int64, undone: PropertyListValue?) throws -> String? {
            var parts = ["c1": part]
            parts["c-1"] = undone
            return try complaint(.counter, acts, parts: parts, shown: .integer(shown))
        }
        #expect(try shown(3, undone: count(1, -2)) == nil)
        #expect(try shown(5, undone: nil) != nil)
        #expect(try shown(0, undone: count(2, -5)) != nil)
    }

    @Test func `what was folded of a counter is there once, unless it was removed`() throws {
        let run = try #require(PartID("c1"))
        let acts: [(Int, AppOperation.Act)] = [
            (1, .count(part: run, times: 1, amount: 2)),
            (2, .count(part: run, times: 2, amount: 3)),
        ]
        func number(_ value: Int64) throws -> Number { try #require(Number(.integer(value))) }
        func increment(_ times: Int64, _ amount: Int64, isRemoved: Bool = false) throws
            -> FoldedIncrement
        {
            FoldedIncrement(
                run: key.part(run), after: times - 1, times: times, amount: try number(amount),
                total: .zero, mark: FoldMark(rawValue: 7), isRemoved: isRemoved, timestamp: .zero)
        }
        let rows = [try increment(1, 2), try increment(2, 3)]
        func shown(
            _ shown: Int64, _ parts: [String: PropertyListValue], _ folded: [FoldedIncrement]
        ) throws -> Bool {
            try complaint(.counter, acts, parts: parts, shown: .integer(shown), folded: folded)
                == nil
        }
        #expect(try shown(5, ["c+": count(7, 5)], rows))
        // Lost, added twice, listed beside the fold.
        #expect(try !shown(2, ["c+": count(7, 2)], [rows[0]]))
        #expect(try !shown(8, ["c+": count(7, 8)], rows))
        #expect(try !shown(10, ["c+": count(7, 5), "c1": count(2, 5)], rows))
        // Gone, and nobody removed it.
        #expect(try !shown(0, ["c+": count(7, 5), "c-+": count(7, -5)], rows))
        #expect(
            try !shown(3, ["c+": count(7, 5)], [try increment(1, 2, isRemoved: true), rows[1]]))
    }

    @Test func `a write without a policy is there, and counted once`() throws {
        let plain = AppOperation.plain(1, .counter)
        let acts: [(Int, AppOperation.Act)] = [(1, .write(seen: [:]))]
        #expect(try complaint(.counter, acts, parts: [:], plain: plain, shown: plain) == nil)
        #expect(try complaint(.counter, acts, parts: [:], shown: nil) != nil)
        #expect(
            try complaint(.counter, acts, parts: [:], plain: plain, shown: .integer(2_000)) != nil)
    }

    @Test func `what was removed does not come back`() throws {
        let offer = AppOperation.offer(1, number: 1)
        let x1 = try #require(PartID("x1"))
        let acts: [(Int, AppOperation.Act)] = [
            (1, .offer(part: x1, offer)), (2, .erase(seen: [key.part(x1): .integer(offer)])),
        ]
        #expect(try complaint(.maximum, acts, parts: [:], shown: nil) == nil)
        #expect(
            try complaint(
                .maximum, acts, parts: ["x1": .integer(offer)], shown: .integer(offer)) != nil)
        for policy in [MergePolicy.array, .register] {
            let name = "\(policy.rawValue)1"
            let part = key.part(try #require(PartID(name)))
            let acts: [(Int, AppOperation.Act)] = [
                (1, policy == .array ? .add : .replace([])), (2, .erase(seen: [part: value(1)])),
            ]
            let shown = policy == .array ? .array([value(1)]) : value(1)
            #expect(try complaint(policy, acts, parts: [:], shown: nil) == nil)
            #expect(try complaint(policy, acts, parts: [name: value(1)], shown: shown) != nil)
        }
    }

    @Test func `a greater value does not give way to a lesser one`() throws {
        let (less, more) = (AppOperation.offer(1, number: 2), AppOperation.offer(9, number: 1))
        let acts: [(Int, AppOperation.Act)] = [
            (1, .offer(part: PartID("x1")!, more)), (2, .offer(part: PartID("x2")!, less)),
        ]
        let (first, second) = (PropertyListValue.integer(more), PropertyListValue.integer(less))
        #expect(try complaint(.maximum, acts, parts: ["x1": first], shown: first) == nil)
        #expect(try complaint(.maximum, acts, parts: ["x2": second], shown: second) != nil)
        let both = ["x1": first, "x2": second]
        #expect(try complaint(.maximum, acts, parts: both, shown: second) != nil)
    }

    @Test func `what was added is there, unless it was removed`() throws {
        let one = PropertyListValue.array([value(1)])
        let empty = PropertyListValue.array([])
        #expect(try complaint(.array, [(1, .add)], parts: ["a1": value(1)], shown: one) == nil)
        #expect(try complaint(.array, [(1, .add)], parts: [:], shown: empty) != nil)
        let removed: [(Int, AppOperation.Act)] = [(1, .add), (2, .remove(1))]
        #expect(try complaint(.array, removed, parts: [:], shown: empty) == nil)
        #expect(try complaint(.array, removed, parts: ["a1": value(1)], shown: one) != nil)
        #expect(try complaint(.array, [], parts: ["a1": value(1)], shown: one) != nil)
    }

    @Test func `a field has what nobody who saw it replaced`() throws {
        let acts: [(Int, AppOperation.Act)] = [(1, .put("f", over: nil)), (2, .put("f", over: 1))]
        func field(_ number: Int) throws -> String? {
            try complaint(
                .dictionary, acts, parts: ["df": value(number)],
                shown: .dictionary(["f": value(number)]))
        }
        #expect(try field(2) == nil)
        #expect(try field(1) != nil)
        #expect(try field(3) != nil)
        #expect(try complaint(.dictionary, acts, parts: [:], shown: .dictionary([:])) != nil)
    }

    @Test func `what stands beside another value stays until somebody replaces it`() throws {
        let apart: [(Int, AppOperation.Act)] = [(1, .replace([])), (2, .replace([]))]
        let both = ["r1": value(1), "r2": value(2)]
        #expect(try complaint(.register, apart, parts: both, shown: value(2)) == nil)
        // By the app's own rule.
        #expect(try complaint(.register, apart, parts: both, shown: value(1)) != nil)
        #expect(try complaint(.register, apart, parts: ["r2": value(2)], shown: value(2)) != nil)
        let after: [(Int, AppOperation.Act)] = [(1, .replace([])), (2, .replace([1]))]
        #expect(try complaint(.register, after, parts: ["r2": value(2)], shown: value(2)) == nil)
        #expect(try complaint(.register, after, parts: both, shown: value(2)) != nil)
    }

    @Test func `what was on a disk that was lost before it was sent is given up`() throws {
        let empty = PropertyListValue.array([])
        #expect(
            try complaint(
                .array, [(1, .add)], parts: [:], shown: empty, besides: [.lost(disk)]) == nil)
    }

    @Test func `what a disk's replacement copy has is not given up`() throws {
        let restored: [Observation] = [
            .synchronized(process: 1), .copied(device: 1), .lost(disk),
        ]
        let (empty, one) = (PropertyListValue.array([]), PropertyListValue.array([value(1)]))
        #expect(
            try complaint(.array, [(1, .add)], parts: [:], shown: empty, besides: restored) != nil)
        #expect(
            try complaint(
                .array, [(1, .add)], parts: ["a1": value(1)], shown: one, besides: restored) == nil)
    }

    @Test func `a refused element may arrive again, though it was removed`() throws {
        let record = Record(
            key: key.part(try #require(PartID("a1"))), content: .value(value(1)),
            stamp: Stamp(HybridTimestamp(milliseconds: 1), DeviceID(rawValue: 1)))
        let removal = AppOperation(
            number: 2, process: 1, disk: disk, key: key, act: .remove(1), seen: nil)
        let comeBack = try complaint(
            .array, [(1, .add)], parts: ["a1": value(1)], shown: .array([value(1)]),
            besides: [.withdrawn(disk: disk, [record]), .merged(removal)])
        #expect(comeBack == nil)
    }

    @Test func `an element comes back only where a device of its account was copied`() throws {
        let removed: [(Int, AppOperation.Act)] = [(1, .add), (2, .remove(1))]
        func clone(of account: Int) throws -> String? {
            try complaint(
                .array, removed, parts: ["a1": value(1)], shown: .array([value(1)]),
                besides: [
                    .signedIn(device: 2, folder: "1", account: account),
                    .cloned(device: 3, from: 2),
                ])
        }
        #expect(try clone(of: 1) == nil)
        #expect(try clone(of: 2) != nil)
    }

    @Test func `a fold that somebody saw contains what was folded up to its mark`() throws {
        let run = try #require(PartID("c1"))
        let fold = key.part(try #require(PartID("c+")))
        let acts: [(Int, AppOperation.Act)] = [
            (1, .count(part: run, times: 1, amount: 2)),
            (2, .count(part: run, times: 2, amount: 3)),
            (3, .erase(seen: [fold: count(FoldMark(revision: 1, epoch: 1).rawValue, 2)])),
        ]
        func increment(_ times: Int64, _ amount: Int64, isRemoved: Bool) throws -> FoldedIncrement {
            let number = try #require(Number(.integer(amount)))
            return FoldedIncrement(
                run: key.part(run), after: times - 1, times: times, amount: number, total: number,
                mark: FoldMark(revision: times, epoch: 1), isRemoved: isRemoved, timestamp: .zero)
        }
        let folded = [
            try increment(1, 2, isRemoved: true), try increment(2, 3, isRemoved: false),
        ]
        #expect(
            try complaint(.counter, acts, parts: [:], shown: .integer(3), folded: folded) == nil)
        #expect(try complaint(.counter, acts, parts: [:], shown: nil, folded: []) != nil)
    }
}
