// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

struct HistoryWatchTests {
    private func sight(
        _ history: UInt64 = 1, log: Int64? = nil, _ revisions: [Int64: Int64] = [:]
    ) -> HistoryWatch.Sight {
        HistoryWatch.Sight(
            history: DatabaseHistory(name: history), log: log,
            revisions: revisions.map { HistoryWatch.Revision(store: $0.key, revision: $0.value) })
    }

    @Test func `a database that goes forward is trusted`() {
        var watch = HistoryWatch()
        for step in 1...5 as ClosedRange<Int64> {
            let sight = sight(log: step / 2, [7: step, 8: 1])
            #expect(watch.note(sight, since: watch.floor) == .trusted)
        }
    }

    @Test func `a lower position of the log is noticed`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(log: 10), since: watch.floor) == .trusted)
        #expect(Self.isBack(watch.note(sight(log: 9), since: watch.floor)))
    }

    @Test func `a lower revision of a store is noticed, with and without a log`() {
        for log in [nil, 10] as [Int64?] {
            var watch = HistoryWatch()
            #expect(watch.note(sight(log: log, [7: 3]), since: watch.floor) == .trusted)
            #expect(Self.isBack(watch.note(sight(log: log, [7: 2]), since: watch.floor)))
        }
    }

    @Test func `looks that overlap may be noted in any order`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(log: 1, [7: 1]), since: watch.floor) == .trusted)
        let floor = watch.floor
        #expect(watch.note(sight(log: 20, [7: 5]), since: floor) == .trusted)
        #expect(watch.note(sight(log: 10, [7: 4]), since: floor) == .trusted)
        // The later one is not forgotten.
        #expect(Self.isBack(watch.note(sight(log: 19, [7: 5]), since: watch.floor)))
        #expect(Self.isBack(watch.note(sight(log: 20, [7: 4]), since: watch.floor)))
    }

    @Test func `in another history everything may be lower`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(1, log: 10, [7: 3]), since: watch.floor) == .trusted)
        let before = watch.floor
        #expect(watch.note(sight(2, log: 5, [7: 1]), since: watch.floor) == .trusted)
        // A look that began before is of the old history, and changes nothing.
        #expect(watch.note(sight(1, log: 11, [7: 4]), since: before) == .trusted)
        // One that begins now leads to a database that was replaced.
        #expect(watch.note(sight(1, log: 11, [7: 4]), since: watch.floor) == .replaced)
        #expect(Self.isBack(watch.note(sight(2, log: 4), since: watch.floor)))
    }

    // MARK: - Timelines

    private func primary(
        _ timeline: UInt32, start: UInt64 = 1, system: UInt64 = 7
    ) -> DatabaseHistory.Primary {
        DatabaseHistory.Primary(system: system, timeline: timeline, start: start)
    }

    private func sight(
        _ primary: DatabaseHistory.Primary, log: Int64? = nil, _ revisions: [Int64: Int64] = [:]
    ) -> HistoryWatch.Sight {
        var sight = sight(0, log: log, revisions)
        sight.history = DatabaseHistory(
            primary: primary, name: UInt64(primary.timeline) << 32 | primary.start)
        return sight
    }

    @Test func `a replaced primary is never adopted, however new its start is`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(primary(1), [7: 3]), since: watch.floor) == .trusted)
        let before = watch.floor
        #expect(watch.note(sight(primary(2, start: 2), [7: 1]), since: watch.floor) == .trusted)
        for start in [1, 3, 4] as [UInt64] {
            let sight = sight(primary(1, start: start), [7: 9])
            #expect(watch.note(sight, since: watch.floor) == .replaced)
            // Also by a look that began before anybody knew of the promotion.
            #expect(watch.note(sight, since: before) == .replaced)
        }
        #expect(watch.note(sight(primary(2, start: 2), [7: 2]), since: watch.floor) == .trusted)
        #expect(Self.isBack(watch.note(sight(primary(2, start: 2), [7: 1]), since: watch.floor)))
    }

    @Test func `a restart of the same primary is another history, and so is a restore`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(primary(2), log: 9), since: watch.floor) == .trusted)
        #expect(watch.note(sight(primary(2, start: 5), log: 1), since: watch.floor) == .trusted)
        // The process before is gone.
        #expect(watch.note(sight(primary(2), log: 9), since: watch.floor) == .replaced)
        var restored = sight(primary(2, start: 5))
        restored.history.name = 99
        #expect(watch.note(restored, since: watch.floor) == .trusted)
    }

    @Test func `timelines of different systems say nothing of one another`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(primary(9)), since: watch.floor) == .trusted)
        let moved = primary(1, system: 8)
        let isMet = watch.meet(moved)
        #expect(isMet)
        #expect(watch.note(sight(moved), since: watch.floor) == .trusted)
        #expect(watch.primary == moved)
        #expect(watch.note(sight(primary(9)), since: watch.floor) == .replaced)
    }

    @Test func `a primary that was only heard of replaces those before it`() {
        var watch = HistoryWatch()
        #expect(watch.note(sight(primary(1)), since: watch.floor) == .trusted)
        let areMet = [primary(3, start: 0), primary(2)].map { watch.meet($0) }
        #expect(areMet == [true, false])
        #expect(watch.isReplaced(primary(1)))
        #expect(watch.note(sight(primary(1)), since: watch.floor) == .replaced)
        #expect(watch.note(sight(primary(3)), since: watch.floor) == .trusted)
    }

    @Test func `an epoch names its timeline to whoever has the key, and to nobody else`() throws {
        func tag(_ key: UInt64) -> (UInt64) -> UInt32 {
            { UInt32(StableHash("store", seed: $0 &+ key).value >> 32) }
        }
        let histories = [
            primary(1), primary(1, start: 2), primary(2), primary(4_095), primary(9_999),
        ]
        .map { sight($0).history }
        let epochs = try histories.map { try #require(Position.epoch(in: $0, tag: tag(5))) }
        #expect(Set(epochs).count == epochs.count)
        let timelines = epochs.map { Position(epoch: $0, revision: 1).timeline(tag: tag(5)) }
        #expect(timelines == [1, 1, 2, 4_095, 4_095])
        for epoch in epochs {
            #expect(Position(epoch: epoch, revision: 1).timeline(tag: tag(6)) == nil)
            let forged = Position(epoch: epoch ^ 1 << 52, revision: 1)
            #expect(forged.timeline(tag: tag(5)) == nil)
        }
        #expect(Position.epoch(in: DatabaseHistory(name: 1), tag: tag(5)) == nil)
    }

    @Test func `the stores it knows are bounded, and the recent ones are known`() {
        var watch = HistoryWatch(generationMax: 8)
        for store in 1...100 as ClosedRange<Int64> {
            #expect(watch.note(sight([store: 9]), since: watch.floor) == .trusted)
        }
        #expect(watch.note(sight([1: 1]), since: watch.floor) == .trusted)
        #expect(Self.isBack(watch.note(sight([100: 8]), since: watch.floor)))
    }
}

extension HistoryWatchTests {
    private static func isBack(_ verdict: HistoryWatch.Verdict) -> Bool {
        if case .wentBack = verdict { true } else { false }
    }

    private func sight(_ revisions: [Int64: Int64]) -> HistoryWatch.Sight {
        sight(1, log: nil, revisions)
    }
}
