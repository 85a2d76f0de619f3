// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A node's listeners receive every revision, whoever committed it.
struct StoreFeedTests {
    private var feed = StoreFeed()

    private func at(_ revision: Int64, epoch: UInt64 = 1) -> Position {
        Position(epoch: revision == 0 ? 0 : epoch, revision: revision)
    }

    private func push(to position: Position, after previous: Position) -> CommittedPush {
        CommittedPush(
            writes: [], folded: [], span: nil, results: [], previous: previous, position: position,
            serverMilliseconds: 0, horizon: .zero, deletions: 0, foldedCount: 0,
            history: HistoryChange(at: .start))
    }

    private func push(_ revision: Int64) -> CommittedPush {
        push(to: at(revision), after: at(revision - 1))
    }

    @Test mutating func `commits of this node alone are published as they are`() {
        #expect(feed.begin(at: at(0)) == .nothing)
        for revision: Int64 in 1...3 { #expect(feed.commit(push(revision)) == .publish) }
        #expect(feed.published == at(3))
        // After a restart of the database, which lost nothing.
        let next = push(to: at(4, epoch: 2), after: at(3))
        #expect(feed.commit(next) == .publish)
    }

    @Test mutating func `a commit after another node's is not published before that`() {
        _ = feed.begin(at: at(5))
        #expect(feed.commit(push(7)) == .read(since: at(5)))
        #expect(feed.commit(push(8)) == .nothing)
        #expect(feed.finish(at: at(7)) == .read(since: at(7)))
        #expect(feed.finish(at: at(8)) == .nothing)
        #expect(feed.commit(push(9)) == .publish)
    }

    @Test mutating func `a hint is a reason to read, and no more`() {
        _ = feed.begin(at: at(5))
        #expect(feed.hear(of: at(9)) == .read(since: at(5)))
        #expect(feed.published == at(5))
        #expect(feed.finish(at: at(6)) == .nothing)
        #expect(feed.published == at(6))
    }

    @Test mutating func `hints that are late, doubled or out of order cost nothing`() {
        _ = feed.begin(at: at(5))
        for revision: Int64 in [5, 3, 5] { #expect(feed.hear(of: at(revision)) == .nothing) }
        #expect(feed.hear(of: at(7)) == .read(since: at(5)))
        for revision: Int64 in [7, 6, 7] { #expect(feed.hear(of: at(revision)) == .nothing) }
        #expect(feed.finish(at: at(7)) == .nothing)
    }

    @Test mutating func `what is heard of before a listener has read the store waits for that`() {
        #expect(feed.commit(push(6)) == .nothing)
        #expect(feed.hear(of: at(7)) == .nothing)
        #expect(feed.begin(at: at(5)) == .read(since: at(5)))
    }

    @Test mutating func `a listener has what was heard of before it read the store`() {
        #expect(feed.commit(push(6)) == .nothing)
        #expect(feed.begin(at: at(6)) == .nothing)
        #expect(feed.commit(push(7)) == .publish)
    }

    @Test mutating func `a later listener may know more than the first one`() {
        _ = feed.begin(at: at(5))
        #expect(feed.begin(at: at(6)) == .read(since: at(5)))
    }

    @Test mutating func `all begin anew for a listener that read an older state than the first`() {
        _ = feed.begin(at: at(5))
        #expect(feed.begin(at: at(4)) == .restart)
    }

    @Test mutating func `a listener that read before a commit was published gets it later`() {
        _ = feed.begin(at: at(5))
        #expect(feed.commit(push(6)) == .publish)
        #expect(feed.begin(at: at(5)) == .nothing)
        #expect(feed.commit(push(7)) == .publish)
    }

    /// Another commit may have taken the place of the last one.
    @Test mutating func `a commit of another epoch with the next number is not news alone`() {
        _ = feed.begin(at: at(5))
        let other = push(to: at(6, epoch: 2), after: at(5, epoch: 2))
        #expect(feed.commit(other) == .read(since: at(5)))
        #expect(feed.finish(at: nil) == .restart)
    }

    @Test mutating func `a lower revision of another epoch is no old news`() {
        _ = feed.begin(at: at(5))
        #expect(feed.hear(of: at(4, epoch: 2)) == .read(since: at(5)))
        #expect(feed.hear(of: at(6)) == .nothing)
        #expect(feed.hear(of: at(5, epoch: 2)) == .nothing)
        #expect(feed.finish(at: at(6)) == .read(since: at(6)))
        #expect(feed.finish(at: nil) == .restart)
    }
}
