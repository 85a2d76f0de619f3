// SPDX-License-Identifier: Apache-2.0

internal import Testing

@testable internal import UbiquityCore

struct SteadyClockTests {
    private static let hour = SteadyClock.evenMilliseconds

    /// Whether the clock is trusted at each of some moments.
    private func trusted(_ moments: [(now: Int64, uptime: Int64)]) -> [Bool] {
        var clock = SteadyClock()
        return moments.map { clock.isSteady(now: $0.now, uptime: $0.uptime) }
    }

    @Test func `a clock is trusted when it has run evenly for an hour`() {
        let minutes: [Int64] = Array(0...60)
        #expect(
            trusted(minutes.map { (1_000 + $0 * 60_000, $0 * 60_000) })
                == Array(repeating: false, count: 60) + [true])
        // It is adjusted a little.
        #expect(trusted([(0, 0), (60_000 + Self.hour, Self.hour)]) == [false, true])
    }

    @Test func `nothing has expired by a clock that is not trusted`() {
        var clock = SteadyClock()
        #expect(clock.removalTime(now: 9_000, uptime: 0) == 0)
        #expect(clock.removalTime(now: 9_000 + Self.hour, uptime: Self.hour) == 9_000 + Self.hour)
        #expect(clock.removalTime(now: 90_000_000, uptime: Self.hour) == 0)
    }

    @Test(arguments: [-40 * 86_400_000, -61_000, 61_000, 40 * 86_400_000] as [Int64])
    func `a clock that jumps is not trusted for an hour`(jump: Int64) {
        let hour = Self.hour
        let moments: [(Int64, Int64)] = [
            (0, 0), (hour, hour), (hour + jump, hour), (2 * hour + jump - 1, 2 * hour - 1),
            (2 * hour + jump, 2 * hour),
        ]
        #expect(trusted(moments) == [false, true, false, false, true])
    }
}
