// SPDX-License-Identifier: Apache-2.0

internal import Testing

@testable internal import UbiquityCore

struct FairQueueTests {
    @Test func `each is next after at most one of everybody else`() {
        var turns = FairQueue<String, Int>()
        for number in 1...4 { turns.append(number, of: "greedy") }
        turns.append(10, of: "ada")
        turns.append(20, of: "bob")
        turns.append(21, of: "bob")
        #expect(turns.count == 7)
        #expect(turns.take(rounds: 9) { _ in true } == [1, 10, 20, 2, 21, 3, 4])
        #expect(turns.isEmpty && turns.count == 0)
    }

    @Test func `what does not fit comes first the next time`() {
        var turns = FairQueue<String, Int>()
        for number in 1...3 { turns.append(number, of: "greedy") }
        #expect(turns.take(rounds: 9) { $0 < 2 } == [1])
        turns.append(10, of: "ada")
        var room = 1
        func fits(_: Int) -> Bool {
            defer { room -= 1 }
            return room > 0
        }
        #expect(turns.take(rounds: 9, while: fits) == [2])
        room = 1
        #expect(turns.take(rounds: 9, while: fits) == [10])
        #expect(turns.take { _ in true } == [3])
    }

    @Test func `each has as many as there are rounds`() {
        var turns = FairQueue<String, Int>()
        for number in 1...4 { turns.append(number, of: "greedy") }
        turns.append(10, of: "ada")
        #expect(turns.take(rounds: 2) { _ in true } == [1, 10, 2])
        #expect(turns.take(rounds: 1) { _ in true } == [3])
        #expect(turns.count == 1 && turns.take { _ in true } == [4])
    }

    @Test func `the order of turns is that of a list whose first goes to its end`() {
        var numbers = SystemRandomNumberGenerator()
        var turns = FairQueue<Int, Int>()
        var names: [Int] = []
        var lines: [Int: [Int]] = [:]
        for element in 0..<20_000 {
            // Longer and shorter by turns.
            let isGrowing = element / 1_000 % 2 == 0
            if Int.random(in: 0..<3, using: &numbers) < (isGrowing ? 2 : 1) {
                let name = Int.random(in: 0..<50, using: &numbers)
                if lines[name] == nil { names.append(name) }
                lines[name, default: []].append(element)
                turns.append(element, of: name)
            } else {
                let next = turns.next()
                #expect(next?.name == names.first)
                guard !names.isEmpty else { continue }
                let name = names.removeFirst()
                #expect(next?.element == lines[name]?.removeFirst())
                if lines[name] == [] { lines[name] = nil } else { names.append(name) }
            }
            #expect(turns.count == lines.values.reduce(0) { $0 + $1.count })
        }
    }

    @Test
    func `a continued job is the next of its account, after everybody else`() {
        var turns = FairQueue<String, Int>()
        turns.append(1, of: "greedy")
        turns.append(2, of: "greedy")
        turns.append(10, of: "ada")
        let first = turns.next()
        #expect(first?.name == "greedy" && first?.element == 1)
        turns.putBack(1, of: "greedy")
        #expect(turns.count(of: "greedy") == 2 && turns.count(of: "bob") == 0)
        #expect([turns.next(), turns.next(), turns.next()].map(\.?.element) == [10, 1, 2])
        #expect(turns.next() == nil && turns.isEmpty)
        turns.putBack(2, of: "greedy")
        #expect(turns.next()?.element == 2)
    }
}
