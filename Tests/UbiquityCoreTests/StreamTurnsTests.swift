// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The stores of one event stream.
struct StreamTurnsTests {
    private var turns = StreamTurns(count: 3)

    /// Opens all stores, whose beginnings are sent in one piece.
    private mutating func openAll() {
        for store in 0..<3 {
            #expect(turns.next(canSend: true) == .open(store))
            turns.wait(store)
            #expect(turns.next(canSend: true) == .send(store))
            turns.endTurn(.nothing)
        }
        #expect(turns.next(canSend: true) == nil)
    }

    @Test mutating func `a store is opened when the beginning of the one before was sent`() {
        #expect(turns.next(canSend: false) == .open(0))
        #expect(turns.next(canSend: true) == nil)
        turns.wait(0)
        // The beginning goes on until its turn ends, piece by piece, as the connection takes it.
        #expect(turns.next(canSend: true) == .send(0))
        #expect(turns.next(canSend: false) == nil)
        #expect(turns.next(canSend: true) == .send(0))
        turns.endTurn(.nothing)
        #expect(turns.next(canSend: false) == .open(1))
    }

    @Test mutating func `stores take turns, and one with more to send waits for the others`() {
        openAll()
        for store in [0, 1, 0, 2, 0] { turns.wait(store) }
        var sent: [Int] = []
        var rest = [0: 3, 1: 2, 2: 1]
        while case .send(let store) = turns.next(canSend: true) {
            sent.append(store)
            rest[store]! -= 1
            turns.endTurn(rest[store]! > 0 ? .more : .nothing)
        }
        #expect(sent == [0, 1, 2, 0, 1, 0])
        #expect(turns.isEmpty)
    }

    @Test
    mutating func `a beginning waits for one turn of each other store, not for all of theirs`() {
        #expect(turns.next(canSend: true) == .open(0))
        turns.wait(0)
        #expect(turns.next(canSend: true) == .send(0))
        turns.endTurn(.more)
        #expect(turns.next(canSend: true) == .open(1))
        #expect(turns.next(canSend: true) == .send(0))
        turns.wait(1)
        turns.endTurn(.more)
        #expect(turns.next(canSend: true) == .send(1))
    }

    @Test mutating func `a stream ends when all of its stores have, also those that never began`() {
        #expect(turns.next(canSend: true) == .open(0))
        turns.wait(0)
        turns.endTurn(.ended)
        #expect(turns.next(canSend: true) == .open(1))
        turns.wait(1)
        turns.endTurn(.nothing)
        #expect(turns.next(canSend: true) == .open(2))
        turns.wait(2)
        turns.endTurn(.ended)
        #expect(turns.next(canSend: true) == nil)
        turns.wait(1)
        turns.endTurn(.ended)
        #expect(turns.next(canSend: false) == .finish)
    }
}
