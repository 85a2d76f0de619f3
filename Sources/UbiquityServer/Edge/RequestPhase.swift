// SPDX-License-Identifier: Apache-2.0

/// The phase of a connection: what it is waiting for from the other side, and until when.
///
/// `opening` → `receiving` (head); `idle` → `heading` (bytes) → `receiving` (head); `receiving` →
/// `answering` (end of the request) → `idle` (end of the answer). An answer may end before its
/// request does; then the rest of the request is read at the same pace. Times are milliseconds of
/// any monotonic clock.
struct RequestPhase: Sendable {
    struct Rules: Hashable, Sendable {
        /// From the opening of the connection, or the first byte of a request, to the end of its
        /// head.
        var headMilliseconds: Int64
        var idleMilliseconds: Int64
        var body: TrafficPace.Rule
        /// The maximum of requests that have arrived and are not answered.
        var pipelinedMax: Int
    }

    enum Trouble: Hashable, Sendable {
        /// No request for a while. Not an error, but the connection ends.
        case idle
        case slowHead
        case slowBody
    }

    enum Verdict: Hashable, Sendable {
        /// Check again at that time, or, for nil, when something has happened.
        case fine(until: Int64?)
        case end(Trouble)
    }

    private enum Reading {
        case opening(since: Int64)
        case idle(since: Int64)
        case heading(since: Int64)
        case receiving(TrafficPace)
    }

    private let rules: Rules
    private var reading: Reading
    /// The number of requests whose head has arrived and whose answer has not ended.
    private(set) var unanswered = 0
    /// The number of requests whose head has arrived.
    private(set) var heads = 0

    init(_ rules: Rules, now: Int64) {
        self.rules = rules
        reading = .opening(since: now)
    }

    /// Records the arrival of bytes of any kind.
    mutating func receive(_ count: Int, now: Int64) {
        switch reading {
        case .idle: reading = .heading(since: now)
        case .receiving(var pace):
            pace.move(count)
            reading = .receiving(pace)
        case .opening, .heading: break
        }
    }

    /// - Returns: False if one more request may not wait. It does not count, and nothing after it.
    mutating func head(now: Int64) -> Bool {
        guard unanswered < rules.pipelinedMax else {
            reading = .idle(since: now)
            return false
        }
        reading = .receiving(TrafficPace(rules.body, now: now))
        unanswered += 1
        heads += 1
        return true
    }

    mutating func requestEnded(now: Int64) { reading = .idle(since: now) }

    mutating func answerEnded(now: Int64) {
        unanswered = max(0, unanswered - 1)
        if case .idle = reading { reading = .idle(since: now) }
    }

    /// Whether a request's head is expected, or has begun.
    var isHeading: Bool {
        switch reading {
        case .opening, .heading: true
        case .idle, .receiving: false
        }
    }

    /// Whether a request's body is expected.
    var isReceiving: Bool { if case .receiving = reading { true } else { false } }

    mutating func check(now: Int64) -> Verdict {
        switch reading {
        case .opening(let since), .heading(let since):
            return verdict(since + rules.headMilliseconds, .slowHead, now)
        // The server may take as long as it needs.
        case .idle where unanswered > 0: return .fine(until: nil)
        case .idle(let since): return verdict(since + rules.idleMilliseconds, .idle, now)
        case .receiving(var pace):
            let verdict = pace.check(now: now)
            reading = .receiving(pace)
            switch verdict {
            case .fine(let until): return .fine(until: until)
            case .tooSlow: return .end(.slowBody)
            }
        }
    }

    private func verdict(_ end: Int64, _ trouble: Trouble, _ now: Int64) -> Verdict {
        now < end ? .fine(until: end) : .end(trouble)
    }
}
