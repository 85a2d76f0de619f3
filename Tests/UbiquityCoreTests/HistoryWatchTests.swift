// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

struct HistoryWatchTests {
    private func sight(
        _ history: UInt64 = 1, log: Int64? = nil, _ revisions: [Int64: Int64] = [:]
    ) -> HistoryWatch.Sight {
        HistoryWatch.Sight(
            history: history, log: log,
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
