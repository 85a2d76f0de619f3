// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// The smallest histories of keys whose writes merge, of each policy one that breaks its promise, and
/// one that keeps it.
struct MergeCheckerTests {
    private let key: Key
    private let disk = DiskName(device: 1, folder: "1", store: 0)
    private let store = StoreName(account: 1, store: 0)

    init() throws { key = try Key("p") }

    /// Acknowledged by the disk, and then all should agree.
    private func complaint(
        _ policy: MergePolicy, _ acts: [(number: Int, act: AppProposal.Act)],
        parts: [String: PropertyListValue], shown: PropertyListValue?,
        besides more: [Observation] = []
    ) throws -> String? {
        let done = acts.map { number, act in
            Observation.proposed(
                AppProposal(
                    number: number, process: 1, disk: disk, key: key, act: act, seen: nil))
        }
        let start: [Observation] = [
            .signedIn(device: 1, folder: "1", account: 1),
            .opened(process: 1, disk: disk, values: [:]),
        ]
        return UbiquitySimulationTests.complaint(
            MergeChecker(policies: [key: policy]),
            start + done + more + [.synchronized(process: 1), try settled(parts, shown)])
    }

    private func settled(
        _ parts: [String: PropertyListValue], _ shown: PropertyListValue?
    ) throws -> Observation {
        var records: [Key: Record] = [:]
        for (name, value) in parts {
            let part = key.part(try #require(PartID(name)))
            records[part] = Record(
                key: part, content: .value(value),
                stamp: Stamp(HybridTimestamp(milliseconds: 1), DeviceID(rawValue: 1)))
        }
        var merged: [Key: PropertyListValue] = [:]
        merged[key] = shown
        return .settled(
            Settlement(
                server: [store: records],
                processes: [
                    Settlement.Process(
                        number: 1, disk: disk, account: 1, values: [:], waiting: [],
                        isConnected: true, onDisk: [:], merged: merged)
                ]))
    }

    private func value(_ number: Int) -> PropertyListValue { AppProposal.value(number) }

    @Test func `a count that was acknowledged is neither less nor more`() throws {
        let run = try #require(PartID("c1"))
        let acts: [(Int, AppProposal.Act)] = [
            (1, .count(run: run, amount: 2, total: 2)), (2, .count(run: run, amount: 3, total: 5)),
        ]
        func counted(_ times: Int64, _ total: Int64, shown: Int64) throws -> String? {
            let part = PropertyListValue.array([.integer(times), .integer(total)])
            return try complaint(
                .counter, acts, parts: ["c1": part], shown: .integer(shown))
        }
        #expect(try counted(2, 5, shown: 5) == nil)
        #expect(try counted(1, 2, shown: 2) != nil)
        #expect(try counted(3, 8, shown: 8) != nil)
        #expect(try counted(2, 5, shown: 7) != nil)
    }

    @Test func `a greater value does not give way to a lesser one`() throws {
        let (less, more) = (AppProposal.offer(1, number: 2), AppProposal.offer(9, number: 1))
        let acts: [(Int, AppProposal.Act)] = [(1, .offer(more)), (2, .offer(less))]
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
        let removed: [(Int, AppProposal.Act)] = [(1, .add), (2, .remove(1))]
        #expect(try complaint(.array, removed, parts: [:], shown: empty) == nil)
        #expect(try complaint(.array, removed, parts: ["a1": value(1)], shown: one) != nil)
        #expect(try complaint(.array, [], parts: ["a1": value(1)], shown: one) != nil)
    }

    @Test func `a field has what nobody who saw it replaced`() throws {
        let acts: [(Int, AppProposal.Act)] = [(1, .put("f", over: nil)), (2, .put("f", over: 1))]
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
        let apart: [(Int, AppProposal.Act)] = [(1, .replace([])), (2, .replace([]))]
        let both = ["r1": value(1), "r2": value(2)]
        #expect(try complaint(.register, apart, parts: both, shown: value(2)) == nil)
        #expect(try complaint(.register, apart, parts: ["r2": value(2)], shown: value(2)) != nil)
        let after: [(Int, AppProposal.Act)] = [(1, .replace([])), (2, .replace([1]))]
        #expect(try complaint(.register, after, parts: ["r2": value(2)], shown: value(2)) == nil)
    }

    @Test func `what was on a disk that was lost before it was sent is let go`() throws {
        let empty = PropertyListValue.array([])
        #expect(
            try complaint(
                .array, [(1, .add)], parts: [:], shown: empty, besides: [.lost(disk)]) == nil)
    }
}
