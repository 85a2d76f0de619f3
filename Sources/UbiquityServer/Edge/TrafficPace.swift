// SPDX-License-Identifier: Apache-2.0

/// Whether bytes move fast enough: in each window of time so many at least, and all of it within
/// a time. Times are milliseconds of any clock that does not go back.
struct TrafficPace: Hashable, Sendable {
    /// What is asked of the other side.
    struct Rule: Hashable, Sendable {
        var windowMilliseconds: Int64
        var bytesPerSecondMin: Int
        /// Nil: as long as it moves.
        var totalMilliseconds: Int64?
        /// What may lie in buffers between the other side and here. Bytes are seen to move when such a
        /// buffer has emptied so far that it takes more, so many at once, and then none for long: who
        /// reads this on time has read them one by one.
        var lumpBytesMax = 0
    }

    enum Verdict: Hashable, Sendable {
        /// To be asked again then.
        case fine(until: Int64)
        case tooSlow
    }

    private let rule: Rule
    private let began: Int64
    private var windowBegan: Int64
    private var bytes = 0
    /// What moved before it had to, or may be on its way in a buffer: at most a lump.
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
