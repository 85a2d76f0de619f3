// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

struct CompactionRuleTests {
    private let rule = CompactionRule(
        retentionMilliseconds: 100, liveMilliseconds: 1_000, tombstonesMax: 3)

    private func horizon(_ deletions: [(Int64, Int64)], passed: Int64?) -> Int64? {
        let deletions = deletions.map {
            CompactionRule.Tombstone(
                revision: $0.0, committed: $0.1, timestamp: HybridTimestamp(milliseconds: $0.1))
        }
        return rule.horizon(
            of: deletions, passed: passed, running: 1_000,
            newest: HybridTimestamp(milliseconds: 1_000))
    }

    @Test func `what is old enough and passed by all is forgotten`() {
        #expect(horizon([(1, 800), (2, 900), (3, 901)], passed: 9) == 2)
    }

    @Test func `what a live device has not passed is kept`() {
        #expect(horizon([(1, 800), (2, 900)], passed: 1) == 1)
        #expect(horizon([(1, 800), (2, 900)], passed: 0) == nil)
    }

    @Test func `without devices the age alone decides`() {
        #expect(horizon([(1, 800), (2, 900)], passed: nil) == 2)
    }

    @Test func `too many are forgotten, the oldest first, whoever waits for them`() {
        #expect(horizon([(1, 990), (2, 991), (3, 992), (4, 993), (5, 994)], passed: 0) == 2)
    }

    @Test func `the deletion of a long key counts as several`() throws {
        #expect(
            try Key(String(repeating: "k", count: 64)).tombstoneWeight == 1)
        #expect(Key.tombstoneWeight(bytes: 65) == 2)
        let deletions = (1...3).map { number in
            CompactionRule.Tombstone(
                revision: number, committed: 990, timestamp: HybridTimestamp(milliseconds: 990),
                weight: 2)
        }
        let horizon = rule.horizon(
            of: deletions, passed: 0, running: 1_000, newest: HybridTimestamp(milliseconds: 1_000))
        #expect(horizon == 2)
    }

    @Test func `a clock that jumps weeks ahead makes no deletion old`() {
        func horizon(running: Int64, newest: Int64) -> Int64? {
            let deletion = CompactionRule.Tombstone(
                revision: 1, committed: 900, timestamp: HybridTimestamp(milliseconds: 5_000))
            return rule.horizon(
                of: [deletion], passed: nil, running: running,
                newest: HybridTimestamp(milliseconds: newest))
        }
        #expect(horizon(running: 999, newest: 1_000_000) == nil)
        #expect(horizon(running: 1_000_000, newest: 5_099) == nil)
        #expect(horizon(running: 1_000, newest: 5_100) == 1)
    }

    @Test func `a younger tombstone before it keeps an older one remembered`() {
        #expect(horizon([(1, 800), (2, 990), (3, 850)], passed: nil) == 1)
    }

    @Test func `without deletions there is nothing to forget`() {
        #expect(horizon([], passed: nil) == nil)
    }
}
