// SPDX-License-Identifier: Apache-2.0

/// Tells whether the leading process responds, from the view of a follower that has asked it for a
/// round trip.
///
/// The leader records a request on disk before it does anything for it. A process stopped by a
/// debugger or `SIGSTOP` does not, but keeps its lease, because the kernel only releases the locks
/// of dead processes. So a follower asks a second time, and then gives up.
struct LeaderMonitor: Hashable, Sendable {
    /// The time in which a leader must record a request, in milliseconds. It is asked twice.
    static let patienceMilliseconds: Int64 = 5_000
    /// The pause before a leader that is working on a request is asked again.
    static let pauseMilliseconds: Int64 = 30_000

    enum Verdict: Hashable, Sendable {
        case askAgain
        case silent
    }

    /// Whether the next save must repeat the request.
    var asksAgain = false
    /// The last verdict, until the leader responds.
    private(set) var isSilent = false
    /// The uptime in milliseconds of the next decision; nil if nobody waits.
    private(set) var lookAt: Int64?
    /// The number of the request that began the wait. A leader that has taken it, or a later one,
    /// has responded since. Nil if the request has no number yet.
    private var number: Int64?
    private var isTaken = false
    private var looks = 0

    /// Begins a wait for a numbered request. The save with the number may still conflict, and the
    /// request gets another number then. Not every request begins a new wait, or a process that
    /// keeps asking would never notice a response.
    mutating func asked(_ number: Int64, at uptime: Int64) {
        guard lookAt == nil || isTaken else {
            self.number = self.number ?? number
            return
        }
        self.number = number
        wait(at: uptime)
        looks = 0
    }

    /// The leader has recorded all requests up to this one.
    mutating func heard(_ number: Int64, at uptime: Int64) {
        guard let asked = self.number, number >= asked else { return }
        isSilent = false
        guard lookAt != nil else { return }
        isTaken = true
        lookAt = uptime + Self.pauseMilliseconds
    }

    mutating func look(at uptime: Int64) -> Verdict? {
        guard let lookAt, lookAt <= uptime else { return nil }
        if isTaken { self.number = nil }
        looks = isTaken ? 0 : looks + 1
        guard looks < 2 else {
            isSilent = true
            self.lookAt = nil
            return .silent
        }
        wait(at: uptime)
        asksAgain = true
        return .askAgain
    }

    /// Ends the wait: nobody waits any more.
    mutating func rest() { (lookAt, asksAgain) = (nil, false) }

    private mutating func wait(at uptime: Int64) {
        isTaken = false
        lookAt = uptime + Self.patienceMilliseconds
    }
}
