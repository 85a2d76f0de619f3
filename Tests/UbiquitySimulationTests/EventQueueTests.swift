// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquitySimulation

struct EventQueueTests {
    @Test func `things happen in the order of their times, then of their planning`() {
        var eventQueue = EventQueue()
        var order: [Int] = []
        for (number, time) in [30, 10, 20, 10, 30, 5].enumerated() {
            eventQueue.add(at: Int64(time)) { order.append(number) }
        }
        while let next = eventQueue.removeNext() { next.body() }
        #expect(order == [5, 1, 3, 2, 0, 4])
    }

    @Test func `a thousand things come out sorted`() {
        let chance = Chance(seed: 1)
        var eventQueue = EventQueue()
        for _ in 0..<1_000 { eventQueue.add(at: chance.int64(0...500)) {} }
        var times: [Int64] = []
        while let next = eventQueue.removeNext() { times.append(next.time) }
        #expect(times.count == 1_000)
        #expect(times == times.sorted())
    }
}
