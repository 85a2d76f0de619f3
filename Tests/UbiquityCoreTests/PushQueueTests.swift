// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The groups in which pushes are committed.
struct PushQueueTests {
    private typealias Queue = PushQueue<String, Int>

    private func push(
        _ number: Int, of account: UInt64 = 0, to store: String = "store", bytes: Int = 300,
        searches: Bool = false
    ) -> Queue.Waiting {
        Queue.Waiting(
            account: account, store: store, bytes: bytes, searches: searches, push: number)
    }

    private func queue(lanes: Int = 1, countMax: Int = 1_000, bytesMax: Int = 1 << 30) -> Queue {
        Queue(lanes: lanes, countMax: countMax, bytesMax: bytesMax)
    }

    @Test func `what arrives during a commit is the next group`() {
        var queue = queue()
        #expect(queue.add(push(1)) == .begins(lane: 0))
        #expect(queue.takeGroup(of: 0).map(\.push) == [1])
        for number in 2...4 { #expect(queue.add(push(number)) == .waits) }
        #expect(queue.finish(lane: 0) == true)
        #expect(queue.takeGroup(of: 0).map(\.push) == [2, 3, 4])
        #expect(!queue.finish(lane: 0) && queue.count == 0)
        #expect(queue.add(push(5)) == .begins(lane: 0))
    }

    @Test func `lanes commit at the same time, each for accounts of its own`() {
        var queue = queue(lanes: 2)
        #expect(queue.add(push(1, of: 4)) == .begins(lane: 0))
        #expect(queue.add(push(2, of: 5)) == .begins(lane: 1))
        #expect(queue.add(push(3, of: 6)) == .waits)
        #expect(queue.takeGroup(of: 0).map(\.push) == [1, 3])
        #expect(queue.takeGroup(of: 1).map(\.push) == [2])
        #expect(!queue.finish(lane: 1) && !queue.finish(lane: 0))
    }

    @Test func `a queue that is full refuses, but one push always has room`() {
        var queue = queue(countMax: 2, bytesMax: 10)
        #expect(queue.add(push(1, bytes: 11)) == .begins(lane: 0))
        #expect(queue.add(push(2, bytes: 1)) == .refused)
        #expect(queue.takeGroup(of: 0).count == 1)
        #expect(queue.add(push(3, bytes: 4)) == .waits)
        #expect(queue.add(push(4, bytes: 7)) == .refused)
        #expect(queue.add(push(5, bytes: 6)) == .waits)
        #expect(queue.add(push(6, bytes: 0)) == .refused)
        #expect(queue.count == 2)
    }

    @Test func `what waits of one account delays another's push by a group at most`() {
        var queue = queue()
        for number in 1...6 { _ = queue.add(push(number, bytes: 8 << 20)) }
        _ = queue.add(push(10, of: 1))
        #expect(queue.takeGroup(of: 0).map(\.push) == [1])
        #expect(queue.takeGroup(of: 0).map(\.push) == [10])
        #expect(queue.takeGroup(of: 0).map(\.push) == [2])
    }

    @Test func `a group has a limited number of pushes, in all and of one account`() {
        var queue = queue()
        for number in 1...20 { _ = queue.add(push(number)) }
        #expect([16, 4].allSatisfy { queue.takeGroup(of: 0).count == $0 })
        for account: UInt64 in 1...600 { _ = queue.add(push(0, of: account)) }
        #expect([512, 88].allSatisfy { queue.takeGroup(of: 0).count == $0 })
    }

    @Test func `a group reads few histories for what must not be kept`() {
        var queue = queue()
        for number in 0..<12 {
            _ = queue.add(push(number, to: "store \(number / 2)", searches: true))
        }
        #expect([8, 4].allSatisfy { queue.takeGroup(of: 0).count == $0 })
    }

    @Test func `a lane that cannot commit gives up all that waits for it`() {
        var queue = queue(lanes: 2, bytesMax: 1_000)
        for number in 1...3 { _ = queue.add(push(number, of: 2)) }
        _ = queue.add(push(4, of: 3, bytes: 100))
        #expect(queue.removeAll(of: 0).map(\.push) == [1, 2, 3])
        #expect(queue.count == 1)
        #expect(queue.add(push(5, of: 2, bytes: 900)) == .begins(lane: 0))
    }
}
