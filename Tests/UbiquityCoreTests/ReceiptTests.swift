// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A device tells the server what it has saved` {
    let cloud = SteppedCloud()

    /// Two devices that are connected and have told what they have.
    private func pair() -> (a: SteppedDevice, b: SteppedDevice) {
        let pair = (cloud.device(), cloud.device())
        cloud.settle()
        wait(milliseconds: 2 * ReceiptRule.intervalMilliseconds)
        return pair
    }

    private func wait(milliseconds: Int64) {
        let end = cloud.now + milliseconds
        while cloud.now < end {
            cloud.settle()
            cloud.pass(milliseconds: min(100, end - cloud.now))
        }
        cloud.settle()
    }

    @Test func `a second after it has saved what others wrote, by one request`() {
        let (a, b) = pair()
        let polls = b.polls
        a["x"] = .integer(1)
        a["y"] = .integer(1)
        cloud.settle()
        #expect(b["y"] == .integer(1))
        #expect(b.told != b.disk.meta.cursor)
        wait(milliseconds: ReceiptRule.delayMilliseconds)
        #expect(b.told == b.disk.meta.cursor)
        #expect(b.polls == polls + 1)
    }

    @Test func `at most once a minute in the long run, and five times at once`() {
        let (a, b) = pair()
        let polls = b.polls
        for number in 1...150 {
            a["x"] = .integer(Int64(number))
            wait(milliseconds: 1_000)
        }
        // Five in the beginning, and two in two and a half minutes.
        #expect((6...8).contains(b.polls - polls))
        wait(milliseconds: ReceiptRule.intervalMilliseconds)
        #expect(b.told == b.disk.meta.cursor)
        let quiet = b.polls
        wait(milliseconds: 10 * ReceiptRule.intervalMilliseconds)
        #expect(b.polls == quiet)
    }

    @Test func `without a request where a push or a new stream says so`() throws {
        let (a, b) = pair()
        let polls = (a.polls, b.polls)
        a["x"] = .integer(1)
        cloud.settle()
        let saved = try #require(b.disk.meta.cursor)
        b["y"] = .integer(2)
        cloud.settle()
        #expect(b.pushes.last?.saved == saved)
        a.cut()
        wait(milliseconds: 500)
        #expect(a.told == a.disk.meta.cursor)
        wait(milliseconds: 5_000)
        #expect((a.polls, b.polls) == polls)
    }

    @Test func `and needs no request for its own writes`() {
        let (a, _) = pair()
        let polls = a.polls
        for number in 1...10 {
            a["x"] = .integer(Int64(number))
            wait(milliseconds: ReceiptRule.intervalMilliseconds)
        }
        #expect(a.polls == polls)
        #expect(a.told != nil)
    }

    @Test func `but nothing that the disk refused, by a push, a stream or a request`() throws {
        let (a, b) = pair()
        let told = try #require(b.told)
        b.disk.isFull = true
        a["x"] = .integer(1)
        wait(milliseconds: 2 * ReceiptRule.intervalMilliseconds)
        #expect(b["x"] == .integer(1))
        #expect(b.told == told)
        b.cut()
        wait(milliseconds: 2 * ReceiptRule.intervalMilliseconds)
        #expect(b.engine.status.link.state == .connected)
        #expect(b.told == told)
        b.disk.isFull = false
        wait(milliseconds: 2 * ReceiptRule.intervalMilliseconds)
        #expect(b.told == b.disk.meta.cursor)
        #expect(b.told != told)
    }

    @Test func `even after it has met another history`() {
        let (a, b) = pair()
        a["x"] = .integer(1)
        wait(milliseconds: 2 * ReceiptRule.intervalMilliseconds)
        cloud.replaceServer(by: SteppedServer(epoch: 7))
        wait(milliseconds: 3 * ReceiptRule.intervalMilliseconds)
        #expect(cloud.server["x"] == .integer(1))
        a["x"] = .integer(2)
        wait(milliseconds: 2 * ReceiptRule.intervalMilliseconds)
        #expect(b.told == b.disk.meta.cursor)
        #expect(b["x"] == .integer(2))
    }
}
