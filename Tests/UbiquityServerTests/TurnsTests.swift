// SPDX-License-Identifier: Apache-2.0

internal import Testing

@testable internal import UbiquityServer

struct TurnsTests {
    @Test func `each is next after at most one of everybody else`() {
        var turns = Turns<String, Int>()
        for number in 1...4 { turns.append(number, of: "greedy") }
        turns.append(10, of: "ada")
        turns.append(20, of: "bob")
        turns.append(21, of: "bob")
        #expect(turns.count == 7)
        #expect(turns.take { _ in true } == [1, 10, 20, 2, 21, 3, 4])
        #expect(turns.isEmpty && turns.count == 0 && turns.all.isEmpty)
    }

    @Test func `what does not fit is the first next time`() {
        var turns = Turns<String, Int>()
        for number in 1...3 { turns.append(number, of: "greedy") }
        #expect(turns.take { $0 < 2 } == [1])
        turns.append(10, of: "ada")
        var room = 1
        func fits(_: Int) -> Bool {
            defer { room -= 1 }
            return room > 0
        }
        #expect(turns.take(while: fits) == [2])
        room = 1
        #expect(turns.take(while: fits) == [10])
        #expect(turns.all == [3])
    }
}
