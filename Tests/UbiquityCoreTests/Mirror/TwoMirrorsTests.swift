// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

/// Two devices whose preferences are mirrored, in every order of short runs, and in drawn ones.
@Suite struct `Two mirrors of one key` {
    private typealias Step = TwoMirrors.Step

    private static let moves = [0, 1].flatMap { device in
        Step.allCases.map { (step: $0, device: device) }
    }

    /// From each of these the runs begin.
    private static let beginnings: [TwoMirrors] = {
        var agreed = TwoMirrors()
        agreed.take(.setA, 0)
        _ = agreed.settle()
        return [TwoMirrors(), agreed]
    }()

    private func forEachRun(
        of length: Int, from start: TwoMirrors, _ moves: [(step: Step, device: Int)],
        _ body: (TwoMirrors) -> Void
    ) {
        if length == 0 { return body(start) }
        for move in moves {
            var next = start
            next.take(move.step, move.device)
            forEachRun(of: length - 1, from: next, moves, body)
        }
    }

    @Test func `agree and rest within four rounds, after any five steps`() {
        var runs = 0
        for start in Self.beginnings {
            forEachRun(of: 5, from: start, Self.moves) { run in
                var run = run
                let rounds = run.settle()
                runs += 1
                if rounds.map({ $0 > 4 }) ?? true || run.agreement == nil {
                    Issue.record("no rest, or no agreement: \(run)")
                }
            }
        }
        #expect(runs == 200_000)
    }

    @Test(arguments: 0..<300)
    func `agree on the last of many edits that were seen, and are silent afterwards`(_ seed: UInt64)
    {
        var chance = Chance(state: seed &+ 1)
        var mirrors = TwoMirrors()
        for _ in 0..<60 {
            let move = Self.moves[Int(chance.next() % UInt64(Self.moves.count))]
            mirrors.take(move.step, move.device)
        }
        #expect(mirrors.settle() != nil)
        #expect(mirrors.agreement != nil)
        // An edit after that reaches both, and is copied once on each side.
        let copies = mirrors.copies
        let last: Step = mirrors.agreement == .some("a") ? .setB : .setA
        mirrors.take(last, 1)
        #expect(mirrors.settle().map { $0 <= 3 } == true)
        #expect(mirrors.agreement == .some(last == .setA ? "a" : "b"))
        #expect(mirrors.copies == copies + 2)
    }

    @Test func `never bring back what was removed, in whatever order the news travel`() {
        var removed = Self.beginnings[1]
        removed.take(.remove, 1)
        let moves = Self.moves.filter { !$0.step.isOfTheApp }
        forEachRun(of: 7, from: removed, moves) { run in
            var run = run
            if run.settle() == nil || run.agreement != .some(nil) {
                Issue.record("the value came back: \(run)")
            }
        }
    }

    @Test func `copy nothing where nothing changes`() {
        var mirrors = Self.beginnings[1]
        let copies = mirrors.copies
        for _ in 0..<10 {
            for move in Self.moves where !move.step.isOfTheApp {
                mirrors.take(move.step, move.device)
            }
        }
        #expect(mirrors.copies == copies)
    }

    /// Numbers by chance, the same for the same seed.
    private struct Chance {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var number = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
            number = (number ^ (number >> 27)) &* 0x94D0_49BB_1331_11EB
            return number ^ (number >> 31)
        }
    }
}
