// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The attempts to commit a group over a connection that may be lost.
struct GroupCommitTests {
    private typealias Commit = GroupCommit<String, String>

    private let lost = CommitFailure(isTransient: true)
    private let doubtful = CommitFailure(isTransient: true, isInDoubt: true)
    private let locked = CommitFailure(isTransient: true, mayBeOfOneStore: true)
    private let final = CommitFailure(isTransient: false)

    private func commit(_ stores: String...) -> Commit {
        Commit(of: stores, patience: 5_000)
    }

    @Test func `a failure that may pass is followed by attempts, with growing pauses`() {
        var commit = commit("a", "b")
        var pauses: [Int64?] = []
        for _ in 1...9 { pauses.append(commit.failed(lost, now: 1)) }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 500, 500])
        #expect(commit.part?.pushes == [0, 1] && commit.part?.mayBeRepeated == false)
        commit.committed(["x", "y"])
        #expect(commit.part == nil && commit.results == ["x", "y"])
    }

    @Test func `patience ends, and no other failure has any`() {
        var commit = commit("a")
        #expect(commit.failed(lost, now: 0) != nil && commit.failed(lost, now: 4_999) != nil)
        #expect(commit.failed(lost, now: 5_000) == nil)
        commit.giveUp("none")
        #expect(commit.results == ["none"])
        commit = self.commit("a")
        #expect(commit.failed(final, now: 0) == nil)
    }

    @Test func `an attempt in doubt makes all later ones repetitions, with patience of their own`()
    {
        var commit = commit("a")
        #expect(commit.failed(doubtful, now: 4_000) != nil)
        #expect(commit.part?.mayBeRepeated == true)
        #expect(commit.failed(lost, now: 8_999) != nil)
        #expect(commit.failed(doubtful, now: 8_999) != nil)
        #expect(commit.failed(lost, now: 9_000) == nil)
        #expect(commit.part?.mayBeRepeated == true)
    }

    @Test func `a store that fails a group is found, and the others do not suffer`() {
        var commit = commit("b", "a", "d", "c", "b")
        var attempts: [[Int]] = []
        var now: Int64 = 0
        while let part = commit.part {
            attempts.append(part.pushes)
            now += 100
            guard part.pushes.contains(2) else {
                commit.committed(part.pushes.map { "\($0)" })
                continue
            }
            if commit.failed(locked, now: now) == nil { commit.giveUp("locked") }
        }
        #expect(commit.results == ["0", "1", "locked", "3", "4"])
        // The first half, the rest, and then "c" and "d" by themselves.
        #expect(attempts.prefix(5) == [[0, 1, 2, 3, 4], [0, 1, 4], [2, 3], [3], [2]])
        #expect(attempts.dropFirst(5).allSatisfy { $0 == [2] })
    }

    @Test func `a half has its time from its own first failure`() {
        var commit = commit("a", "b")
        #expect(commit.failed(locked, now: 0) == 0)
        #expect(commit.part?.pushes == [0])
        while commit.failed(locked, now: 600) != nil, commit.failed(locked, now: 1_100) != nil {}
        commit.giveUp("locked")
        #expect(commit.failed(lost, now: 2_000) != nil)
        commit.committed(["b"])
        #expect(commit.results == ["locked", "b"])
    }

    @Test func `halves of what is in doubt are in doubt`() {
        var commit = commit("a", "b")
        _ = commit.failed(doubtful, now: 1)
        #expect(commit.failed(locked, now: 2) == 0)
        #expect(commit.part?.mayBeRepeated == true && commit.part?.isHalf == true)
        commit.committed(["x"])
        #expect(commit.part?.mayBeRepeated == true)
    }
}
