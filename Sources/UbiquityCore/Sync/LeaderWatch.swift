// SPDX-License-Identifier: Apache-2.0

/// Whether the process that leads answers, as seen by one that follows and has asked it for a round
/// trip.
///
/// The leader takes note of a request on the disk before it does anything for it. A process that was
/// stopped, by a debugger or by `SIGSTOP`, does not, and keeps its lease: the kernel passes on the locks
/// of the dead alone. So who waits asks a second time, and then waits no more.
struct LeaderWatch: Hashable, Sendable {
    /// How long a leader may take to see a request, in milliseconds; it is asked twice.
    static let patienceMilliseconds: Int64 = 5_000
    /// The same where the leader is of a version that takes no note, and only answers at last.
    static let longPatienceMilliseconds: Int64 = 30_000
    /// How often a leader is asked again that is at work on a request.
    static let pauseMilliseconds: Int64 = 30_000

    enum Verdict: Hashable, Sendable {
        case askAgain
        case silent
    }

    /// The last verdict, until the leader is heard of.
    private(set) var isSilent = false
    /// When there is something to decide, by the uptime in milliseconds; nil: nobody waits.
    private(set) var lookAt: Int64?
    /// The number of the request with which the wait began: whoever has taken it, or a later one, has
    /// answered since. Nil: it has no number yet.
    private var number: Int64?
    private var isTaken = false
    private var looks = 0

    /// A request gets a number, with a save that may still conflict: then it gets another one. Not every
    /// request begins a wait, or a leader would never be heard by a process that keeps asking.
    /// - Parameter takesNote: Whether the leader does.
    mutating func asked(_ number: Int64, at uptime: Int64, takesNote: Bool) {
        guard lookAt == nil || isTaken else {
            self.number = self.number ?? number
            return
        }
        self.number = number
        wait(at: uptime, takesNote: takesNote)
        looks = 0
    }

    /// The leader has seen all requests up to this one.
    mutating func heard(_ number: Int64, at uptime: Int64) {
        guard let asked = self.number, number >= asked else { return }
        isSilent = false
        guard lookAt != nil else { return }
        isTaken = true
        lookAt = uptime + Self.pauseMilliseconds
    }

    mutating func look(at uptime: Int64, takesNote: Bool) -> Verdict? {
        guard let lookAt, lookAt <= uptime else { return nil }
        if isTaken { self.number = nil }
        looks = isTaken ? 0 : looks + 1
        guard looks < 2 else {
            isSilent = true
            self.lookAt = nil
            return .silent
        }
        wait(at: uptime, takesNote: takesNote)
        return .askAgain
    }

    /// Nobody waits any more.
    mutating func rest() { lookAt = nil }

    private mutating func wait(at uptime: Int64, takesNote: Bool) {
        isTaken = false
        lookAt = uptime + (takesNote ? Self.patienceMilliseconds : Self.longPatienceMilliseconds)
    }
}
