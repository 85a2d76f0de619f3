// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// The checker of histories objects to the smallest one that breaks its promise, and to none that
/// keeps it.
struct HistoryCheckerTests {
    private let key: Key
    private let store = StoreReference(account: 1, store: 0)
    private let disk = DiskReference(device: 1, folder: "1", store: 0)

    init() throws { key = try Key("k") }

    private func record(_ number: Int) -> Record {
        Record(
            key: key, content: .value(Mark(number: number, batch: 0).value(padding: 0)),
            stamp: Stamp(
                HybridTimestamp(milliseconds: Int64(number)),
                // What loses comes from another device.
                DeviceID(rawValue: number == 0 ? 2 : 1)))
    }

    private func moment(_ revision: Int64) -> RecordVersion.Moment {
        RecordVersion.Moment(revision: revision, milliseconds: revision * 1_000)
    }

    private func line(
        _ number: Int, came: Int64, _ fate: HistoryRule.Line.Fate
    ) -> (line: HistoryRule.Line, content: Content) {
        let record = record(number)
        return (
            HistoryRule.Line(
                key: key, stamp: record.stamp, came: moment(came), fate: fate, isDeletion: false,
                bytes: record.pushBytes), record.content
        )
    }

    private var replaced: (line: HistoryRule.Line, content: Content) {
        line(1, came: 1, .replaced(moment(2), by: record(2).stamp))
    }

    private var current: (line: HistoryRule.Line, content: Content) {
        line(2, came: 2, .current(isKept: true))
    }

    /// A store in which a first write was replaced by a second one.
    /// - Parameter lost: Further writes, which came with the second one and lost.
    private func view(
        _ lines: [(line: HistoryRule.Line, content: Content)], isUnkept: Bool = false,
        lost: [Int] = []
    ) throws -> HistoryView {
        var log = VersionLog()
        var state = StoreState()
        for number in [1, 2] {
            let write = record(number)
            _ = state.lineage.advance(in: 1)
            log.take(
                Push([try Transaction([write], unkept: isUnkept ? [key] : [])]),
                [.committed([.applied])], [write], at: moment(Int64(number)))
        }
        for number in lost {
            log.take(
                Push([try Transaction([record(number)])]),
                [.committed([.superseded(by: record(2))])], [], at: moment(2))
        }
        return HistoryView(
            store: store, lines: lines, log: log, state: state,
            rule: HistoryRule(HistoryLimits(), now: 3_000), greatestNow: 3_000)
    }

    private func complaint(_ view: HistoryView) -> String? {
        UbiquitySimulationTests.complaint(HistoryChecker(), [.kept(view)])
    }

    @Test func `a replaced value that is missing, or was never there`() throws {
        #expect(try complaint(view([replaced, current])) == nil)
        #expect(try complaint(view([current]))?.contains("lacks") == true)
        let invented = line(3, came: 1, .replaced(moment(2), by: record(2).stamp))
        #expect(try complaint(view([replaced, invented, current])) != nil)
        let early = line(1, came: 1, .replaced(moment(1), by: record(2).stamp))
        #expect(try complaint(view([early, current])) != nil)
    }

    @Test func `a write that lost, and is missing`() throws {
        let lost = line(0, came: 2, .lost(moment(2), by: record(2).stamp))
        #expect(try complaint(view([replaced, lost, current], lost: [0])) == nil)
        #expect(try complaint(view([replaced, current], lost: [0]))?.contains("lacks") == true)
        #expect(try complaint(view([replaced, lost, current])) != nil)
    }

    @Test func `a value that must not be kept`() throws {
        let forgotten = HistoryRule.Line(forgotten: key, before: moment(2))
        let note = (line: forgotten, content: Content.deleted)
        let now = line(2, came: 2, .current(isKept: false))
        #expect(try complaint(view([note, now], isUnkept: true)) == nil)
        #expect(try complaint(view([note, replaced, now], isUnkept: true)) != nil)
        // And nothing is unknown without a reason.
        #expect(try complaint(view([note, replaced, current])) != nil)
    }

    @Test func `a store that was something else then, or of which too little is known`() throws {
        let other = line(3, came: 2, .current(isKept: true))
        #expect(try complaint(view([replaced, other]))?.contains("as of revision") == true)
        var short = try view([replaced, current])
        short.state.history.floor = moment(2)
        #expect(complaint(short)?.contains("reaches back") == true)
        short.greatestNow = 3_000 + short.rule.limits.milliseconds
        #expect(complaint(short) == nil)
    }

    @Test func `an excluded write that its device sends as any other`() throws {
        func complaint(
            isMarked: Bool, isUnkept: Bool = true, from device: Int = 1
        ) throws -> String? {
            let author = AppWrite(
                number: 1, batch: 1, process: 1, disk: disk, key: key,
                value: record(1).content.value, time: 0, over: nil, isUnkept: isUnkept)
            var sender = disk
            sender.device = device
            let push = Push([try Transaction([record(1)], unkept: isMarked ? [key] : [])])
            return UbiquitySimulationTests.complaint(
                HistoryChecker(),
                [
                    .opened(process: 1, disk: disk, values: [:]),
                    .opened(process: 2, disk: sender, values: [:]),
                    .wrote(process: 1, [author]), .pushes(process: 2, push, unsaved: []),
                ])
        }
        #expect(try complaint(isMarked: false) != nil)
        #expect(try complaint(isMarked: true) == nil)
        #expect(try complaint(isMarked: false, isUnkept: false) == nil)
        // It does not know that the key is excluded.
        #expect(try complaint(isMarked: false, from: 2) == nil)
    }
}
