// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `The server's answer to a push` {
    let now: Int64 = 1_800_000_000_000
    var admission: PushAdmission { PushAdmission(limits: StoreLimits(), now: now) }

    private func write(
        _ key: String, _ value: PropertyListValue?, at offset: Int64 = 0, device: UInt64 = 1
    ) throws -> Record {
        Record(
            key: try Key(key), content: value.map(Content.value) ?? .deleted,
            stamp: Stamp(
                HybridTimestamp(milliseconds: now + offset), DeviceID(rawValue: device)))
    }

    private func stored(after pushes: Push...) throws -> PushAdmission.Stored {
        var stored = PushAdmission.Stored()
        for push in pushes {
            let decision = try admission.decide(push, on: stored)
            for write in decision.writes { stored.records[write.key] = write }
            (stored.state.usage, stored.state.newest) = (decision.usage, decision.newest)
        }
        return stored
    }

    @Test func `to the same push again is the same, and nothing to store`() throws {
        let push = Push([try Transaction([write("a", .integer(1)), write("b", nil)])])
        let decision = try admission.decide(push, on: stored(after: push))
        #expect(decision.writes == [])
        #expect(decision.results == [.committed([.applied, .applied])])
    }

    @Test func `names the later write that is there already`() throws {
        let later = try write("a", .integer(2), at: 5)
        let stored = try stored(after: Push([Transaction([later])]))
        let decision = try admission.decide(
            Push([Transaction([write("a", .integer(1))])]), on: stored)
        #expect(decision.results == [.committed([.superseded(by: later)])])
        #expect(decision.writes == [])
    }

    @Test func `refuses a transaction whole, and takes the others`() throws {
        let big = PropertyListValue.data([UInt8](repeating: 0, count: 600_000))
        let push = Push([
            try Transaction([write("a", big)]),
            try Transaction([write("small", .integer(1)), write("b", big)]),
            try Transaction([write("c", .integer(3))]),
        ])
        let decision = try admission.decide(push, on: PushAdmission.Stored())
        #expect(decision.writes.map(\.key.string) == ["a", "c"])
        #expect(decision.usage == Usage(bytes: 600_008, keys: 2))
        guard case .refused(let refusal) = decision.results[1] else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.code == "quota-bytes")
    }

    @Test func `lets through what deletes or shrinks in a store that is over its limit`() throws {
        var stored = try stored(
            after: Push([Transaction([write("a", .data([1, 2, 3])), write("b", .integer(1))])]))
        var admission = admission
        admission.limits.storeBytesMax = 4
        admission.limits.keysMax = 1
        let shrink = try admission.decide(
            Push([Transaction([write("a", .data([1]), at: 1)])]), on: stored)
        #expect(shrink.results == [.committed([.applied])])
        let delete = try admission.decide(
            Push([Transaction([write("b", nil, at: 1)])]), on: stored)
        #expect(delete.results == [.committed([.applied])])
        stored.state.usage = Usage(bytes: 4, keys: 1)
        let grow = try admission.decide(
            Push([Transaction([write("c", .boolean(true), at: 1)])]), on: stored)
        #expect(grow.writes == [])
    }

    @Test func `to 1,024 keys of 1 KB and to one of 1 MB is yes, to one byte more no`() throws {
        let kilobyte = PropertyListValue.data([UInt8](repeating: 0, count: 1_024))
        let full = Push([
            try Transaction((0..<1_024).map { try write("key\($0)", kilobyte) })
        ])
        let stored = try stored(after: full)
        #expect(stored.state.usage == Usage(bytes: 1_048_576, keys: 1_024))
        let one = try Transaction([write("one", .data([UInt8](repeating: 0, count: 1_048_576)))])
        #expect(
            try admission.decide(Push([one]), on: PushAdmission.Stored()).results
                == [.committed([.applied])])
        let more = Push([
            try Transaction([write("key0", .data([UInt8](repeating: 0, count: 1_025)), at: 1)])
        ])
        guard case .refused = try admission.decide(more, on: stored).results[0] else {
            Issue.record("not refused")
            return
        }
        let key = Push([try Transaction([write("key1024", .data([]))])])
        guard case .refused(let refusal) = try admission.decide(key, on: stored).results[0] else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.code == "quota-keys")
    }

    @Test func `a store has at most 16,384 parts, whatever they hold`() throws {
        let key = try Key("k")
        func parts(_ numbers: Range<Int>) throws -> Push {
            let writes = numbers.map { number in
                Record(
                    key: key.part(PartID("a\(number)")!), content: .value(.boolean(true)),
                    stamp: Stamp(HybridTimestamp(milliseconds: now), DeviceID(rawValue: 1)))
            }
            return Push([try Transaction(writes)])
        }
        let stored = try stored(after: parts(0..<16_384))
        #expect(stored.state.usage.parts == 16_384)
        let decision = try admission.decide(parts(16_384..<16_385), on: stored)
        guard case .refused(let refusal) = decision.results[0] else {
            Issue.record("not refused")
            return
        }
        #expect(refusal.code == "quota-parts")
    }

    @Test func `refuses what is stamped more than a minute ahead, with the server's time`() throws {
        _ = try admission.decide(
            Push([Transaction([write("a", nil, at: 60_000)])]), on: PushAdmission.Stored())
        #expect(throws: ClockAhead(serverMilliseconds: now, transaction: 1, write: 2)) {
            try admission.decide(
                Push([
                    Transaction([write("a", nil, at: 60_000)]),
                    Transaction([
                        write("b", nil, at: 0), write("c", nil, at: 1), write("d", nil, at: 60_001),
                    ]),
                ]), on: PushAdmission.Stored())
        }
    }

    @Test func `lets a device write after what it has seen, also where the clock was set back`()
        throws
    {
        var stored = PushAdmission.Stored()
        stored.state.newest = HybridTimestamp(milliseconds: now + 3_600_000)
        let next = Record(
            key: try Key("a"), content: .value(.integer(1)),
            stamp: Stamp(stored.state.newest.next, DeviceID(rawValue: 1)))
        #expect(
            try admission.decide(Push([Transaction([next])]), on: stored).results
                == [.committed([.applied])])
    }

    private func take(
        _ offset: Int64, _ stored: inout PushAdmission.Stored
    ) throws -> Bool {
        let push = Push([try Transaction([write("a", nil, at: offset)])])
        do throws(ClockAhead) {
            stored.state.newest = try admission.decide(push, on: stored).newest
            return true
        } catch { return false }
    }

    @Test func `lets nobody get further ahead push by push`() throws {
        var stored = PushAdmission.Stored()
        #expect(try take(60_000, &stored))
        for _ in 0..<1_000 { _ = try take(stored.state.newest.milliseconds - now + 1_000, &stored) }
        #expect(stored.state.newest.milliseconds - now == 60_000)
        #expect(try !take(60_001, &stored))
    }

    @Test func `lets nobody do so either where the clock was set back`() throws {
        var stored = PushAdmission.Stored()
        stored.state.newest = HybridTimestamp(milliseconds: now + 3_600_000)
        for _ in 0..<10 { #expect(try take(3_601_000, &stored)) }
        #expect(stored.state.newest.milliseconds - now == 3_600_000)
        #expect(try !take(3_601_001, &stored))
    }

    @Test func `remembers the deletion of what it never had, for an older write of it may come`()
        throws
    {
        let deletion = try write("a", nil, at: 10, device: 1)
        let stored = try stored(after: Push([Transaction([deletion])]))
        let late = try admission.decide(
            Push([Transaction([write("a", .integer(1), at: 5, device: 2)])]), on: stored)
        #expect(late.results == [.committed([.superseded(by: deletion)])])
        #expect(late.writes == [])
    }

    @Test func `needs each key at most once in a transaction`() throws {
        #expect(throws: PushError.repeatedKey(try Key("a"))) {
            try Transaction([write("a", .integer(1)), write("a", .integer(2), at: 1)])
        }
        #expect(throws: PushError.emptyTransaction) { try Transaction([]) }
    }
}

@Suite struct `A cursor` {
    @Test func `holds in the epoch that gave it, and in no other history`() {
        var lineage = Lineage()
        for _ in 0..<3 { _ = lineage.advance(in: 1) }
        let copy = lineage
        for _ in 0..<3 { _ = lineage.advance(in: 2) }
        #expect(lineage.spans.count == 2)
        #expect(lineage.resumption(from: Position(epoch: 1, revision: 2)) == .after(2))
        #expect(lineage.resumption(from: Position(epoch: 2, revision: 5)) == .after(5))
        #expect(lineage.resumption(from: Position(epoch: 1, revision: 5)) == .otherHistory)
        #expect(copy.resumption(from: Position(epoch: 2, revision: 5)) == .otherHistory)
        #expect(copy.resumption(from: Position(epoch: 0, revision: 0)) == .after(0))
    }

    @Test func `from before compacted tombstones is refused`() {
        var lineage = Lineage()
        for _ in 0..<5 { _ = lineage.advance(in: 1) }
        lineage.compactedRevision = 3
        #expect(lineage.resumption(from: Position(epoch: 1, revision: 2)) == .compacted)
        #expect(lineage.resumption(from: Position(epoch: 1, revision: 0)) == .compacted)
        #expect(lineage.resumption(from: Position(epoch: 1, revision: 3)) == .after(3))
    }

    @Test func `is read back from its text, and nothing else is`() throws {
        let position = Position(epoch: 0xABC, revision: 42)
        #expect(Position(position.cursor) == position)
        for text in [
            "1", "x-1", "0000000000000abc--1", "0000000000000abc-1-2", "0000000000000ABC-1",
        ] {
            #expect(Position(try #require(Cursor(text))) == nil)
        }
        #expect(Cursor("") == nil)
        #expect(Cursor("a b") == nil)
    }
}

@Suite struct `An allowance` {
    @Test func `grants its burst at once and then its rate`() {
        var bucket = TokenBucket(Allowance(burst: 2, perSecond: 4), now: 0)
        #expect(bucket.take(now: 0) == nil)
        #expect(bucket.take(now: 0) == nil)
        #expect(bucket.take(now: 0) == 250)
        #expect((10...11).contains(bucket.take(now: 240) ?? 0))
        #expect(bucket.take(now: 250) == nil)
        #expect(bucket.take(now: 100_000) == nil)
    }

    @Test func `grants a large push on credit, and has the next one wait for it`() {
        var bucket = TokenBucket(Allowance(burst: 2, perSecond: 4), now: 0)
        #expect(bucket.take(now: 0) == nil)
        bucket.charge(bytes: 8_191, now: 0)
        #expect(bucket.take(now: 0) == nil)
        bucket.charge(bytes: 7 * 8_192, now: 0)
        #expect(bucket.take(now: 0) == 2_000)
        #expect(bucket.take(now: 2_000) == nil)
    }
}
