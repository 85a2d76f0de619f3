// SPDX-License-Identifier: Apache-2.0

/// Checks that bytes move fast enough: a minimum in each window of time, and optionally a total
/// time. Times are milliseconds of any monotonic clock.
struct TrafficPace: Hashable, Sendable {
    /// The requirements on the other side.
    struct Rule: Hashable, Sendable {
        var windowMilliseconds: Int64
        var bytesPerSecondMin: Int
        /// Nil for no limit as long as bytes move.
        var totalMilliseconds: Int64?
        /// The bytes that may be in buffers between the other side and this server. Movement only
        /// shows when such a buffer has emptied far enough to accept more: many bytes at once, and
        /// then none for a long time, even if the other side reads steadily.
        var lumpBytesMax = 0
    }

    enum Verdict: Hashable, Sendable {
        /// Check again at that time.
        case fine(until: Int64)
        case tooSlow
    }

    private let rule: Rule
    private let began: Int64
    private var windowBegan: Int64
    private var bytes = 0
    /// The bytes that moved early, or may be in a buffer: at most one lump.
    private var ahead: Double

    init(_ rule: Rule, now: Int64) {
        self.rule = rule
        ahead = Double(rule.lumpBytesMax)
        began = now
        windowBegan = now
    }

    mutating func move(_ count: Int) { bytes += count }

    mutating func check(now: Int64) -> Verdict {
        let end = rule.totalMilliseconds.map { began + $0 } ?? .max
        guard now < end else { return .tooSlow }
        guard now >= windowBegan + rule.windowMilliseconds else {
            return .fine(until: min(end, windowBegan + rule.windowMilliseconds))
        }
        let seconds = Double(now - windowBegan) / 1_000
        let rest = ahead + Double(bytes) - seconds * Double(rule.bytesPerSecondMin)
        guard rest >= 0 else { return .tooSlow }
        (windowBegan, bytes, ahead) = (now, 0, min(rest, Double(rule.lumpBytesMax)))
        return .fine(until: min(end, now + rule.windowMilliseconds))
    }
}
