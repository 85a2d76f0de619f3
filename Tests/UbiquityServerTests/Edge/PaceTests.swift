// SPDX-License-Identifier: Apache-2.0

internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

struct TrafficPaceTests {
    private static let rule = TrafficPace.Rule(
        windowMilliseconds: 10_000, bytesPerSecondMin: 100, totalMilliseconds: 60_000)

    @Test func `what moves at the least rate goes on to the end of its time`() {
        var pace = TrafficPace(Self.rule, now: 5)
        for second in stride(from: 0, through: 50, by: 10) as StrideThrough<Int64> {
            #expect(
                pace.check(now: 5 + second * 1_000) == .fine(until: 5 + second * 1_000 + 10_000))
            pace.move(1_000)
        }
        #expect(pace.check(now: 60_004) == .fine(until: 60_005))
        #expect(pace.check(now: 60_005) == .tooSlow)
    }

    @Test func `one byte less in a window is too slow`() {
        var pace = TrafficPace(Self.rule, now: 0)
        pace.move(999)
        #expect(pace.check(now: 9_999) == .fine(until: 10_000))
        #expect(pace.check(now: 10_000) == .tooSlow)
    }

    @Test func `a fast start does not permit silence later`() {
        var pace = TrafficPace(Self.rule, now: 0)
        pace.move(1_000_000)
        #expect(pace.check(now: 10_000) == .fine(until: 20_000))
        #expect(pace.check(now: 20_000) == .tooSlow)
    }

    /// - Parameter bytes: The number of bytes that are seen to move at once, when all of them were
    ///   read.
    /// - Returns: When it was too slow; nil if that did not happen within an hour.
    private func seconds(readAt bytesPerSecond: Int, inLumpsOf bytes: Int) -> Int64? {
        let rule = TrafficPace.Rule(
            windowMilliseconds: 20_000, bytesPerSecondMin: 1_024, lumpBytesMax: 131_072)
        var pace = TrafficPace(rule, now: 0)
        var moved = 0
        for second in 1...3_600 as ClosedRange<Int64> {
            let read = Int(second) * bytesPerSecond / bytes * bytes
            pace.move(read - moved)
            moved = read
            if pace.check(now: second * 1_000) == .tooSlow { return second }
        }
        return nil
    }

    @Test(arguments: [1, 1_460, 20_480, 65_536, 95_232, 131_072])
    func `a client that reads at the minimum rate is not cut off, whatever the buffers`(lump: Int) {
        #expect(seconds(readAt: 1_024, inLumpsOf: lump) == nil)
        #expect(seconds(readAt: 4_096, inLumpsOf: lump) == nil)
        #expect(seconds(readAt: 900, inLumpsOf: lump) != nil)
    }

    @Test func `a client that reads nothing is cut off once a buffer could have been read`() {
        #expect(seconds(readAt: 0, inLumpsOf: 1) == 140)
    }

    @Test func `without an end it may move forever`() {
        var rule = Self.rule
        rule.totalMilliseconds = nil
        var pace = TrafficPace(rule, now: 0)
        for round in 1...1_000 as ClosedRange<Int64> {
            pace.move(1_000)
            #expect(pace.check(now: round * 10_000) == .fine(until: (round + 1) * 10_000))
        }
    }
}

struct RequestPhaseTests {
    private static let rules = RequestPhase.Rules(
        headMilliseconds: 1_000, idleMilliseconds: 5_000,
        body: TrafficPace.Rule(
            windowMilliseconds: 2_000, bytesPerSecondMin: 10, totalMilliseconds: 10_000),
        pipelinedMax: 2)

    @Test func `a silent connection ends like one that stops in the middle of a head`() {
        var silent = RequestPhase(Self.rules, now: 0)
        #expect(silent.check(now: 999) == .fine(until: 1_000))
        #expect(silent.check(now: 1_000) == .end(.slowHead))
        var slow = RequestPhase(Self.rules, now: 0)
        for time in stride(from: 0, to: 1_000, by: 10) as StrideTo<Int64> {
            slow.receive(1, now: time)
        }
        #expect(slow.check(now: 1_000) == .end(.slowHead))
    }

    @Test func `an answer may take any time, and a connection is idle after it`() {
        var phase = RequestPhase(Self.rules, now: 0)
        phase.receive(100, now: 10)
        #expect(phase.head(now: 10) == true)
        phase.requestEnded(now: 10)
        #expect(phase.check(now: 1_000_000) == .fine(until: nil))
        phase.answerEnded(now: 1_000_000)
        #expect(phase.check(now: 1_004_999) == .fine(until: 1_005_000))
        #expect(phase.check(now: 1_005_000) == .end(.idle))
    }

    @Test func `the next request has as much time as the first`() {
        var phase = RequestPhase(Self.rules, now: 0)
        #expect(phase.head(now: 10) == true)
        phase.requestEnded(now: 10)
        phase.answerEnded(now: 20)
        phase.receive(1, now: 4_000)
        phase.receive(1, now: 4_900)
        #expect(phase.check(now: 4_999) == .fine(until: 5_000))
        #expect(phase.check(now: 5_000) == .end(.slowHead))
    }

    @Test func `a body that trickles ends, answered or not`() {
        for isAnswered in [false, true] {
            var phase = RequestPhase(Self.rules, now: 0)
            #expect(phase.head(now: 0) == true)
            if isAnswered { phase.answerEnded(now: 1) }
            phase.receive(19, now: 1_000)
            #expect(phase.check(now: 2_000) == .end(.slowBody))
        }
    }

    @Test func `one more than may wait is too many`() {
        var phase = RequestPhase(Self.rules, now: 0)
        for isWelcome in [true, true, false] {
            #expect(phase.head(now: 0) == isWelcome)
            phase.requestEnded(now: 0)
        }
        #expect(phase.unanswered == 2 && phase.heads == 2)
        #expect(phase.check(now: 1_000_000) == .fine(until: nil))
        var patient = RequestPhase(Self.rules, now: 0)
        for time in 0..<100 as Range<Int64> {
            #expect(patient.head(now: time) == true)
            patient.requestEnded(now: time)
            patient.answerEnded(now: time)
        }
    }
}

struct CensusTests {
    private let proxy = IPAddress("10.0.0.1")
    private let stranger = IPAddress("192.0.2.1")

    private func counter(max: Int, perAddressMax: Int) throws -> ConnectionCounter {
        ConnectionCounter(
            max: max, perAddressMax: perAddressMax,
            proxies: TrustedProxies([try #require(AddressRange("10.0.0.0/8"))]))
    }

    @Test func `each address has its number, and a proxy that of all`() throws {
        let counter = try counter(max: 6, perAddressMax: 2)
        #expect(counter.enter(stranger) == .welcome)
        #expect(counter.enter(stranger) == .welcome)
        #expect(counter.enter(stranger) == .tooManyFromThere)
        counter.leave(stranger)
        counter.leave(stranger)
        #expect(counter.enter(stranger) == .welcome)
        for _ in 0..<4 { #expect(counter.enter(proxy) == .welcome) }
        #expect(counter.enter(proxy) == .tooMany)
        #expect(counter.enter(nil) == .tooMany)
        #expect(counter.count == 8)
    }

    @Test func `neighbours of one IPv6 line count together`() throws {
        let counter = try counter(max: 100, perAddressMax: 1)
        #expect(counter.enter(IPAddress("2001:db8::1")) == .welcome)
        #expect(counter.enter(IPAddress("2001:db8::2")) == .tooManyFromThere)
        #expect(counter.enter(IPAddress("2001:db8:0:1::2")) == .welcome)
    }

    @Test func `a budget is never overdrawn`() {
        let budget = ByteBudget(max: 100)
        #expect(budget.take(60))
        #expect(!budget.take(41))
        #expect(budget.take(40))
        #expect(budget.isFull)
        budget.give(100)
        #expect(budget.bytes == 0)
    }
}
