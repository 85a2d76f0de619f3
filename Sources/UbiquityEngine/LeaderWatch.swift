// SPDX-License-Identifier: Apache-2.0

/// Asks the leader, another process, for a round trip when something waits for it, so that a leader
/// that stands still is noticed though no app asks.
///
/// It asks once in each wait, and whenever the shell says to hurry: a leader that is offline responds,
/// and is not woken again and again.
struct LeaderWatch {
    /// The time in which a leader does something without being asked, in milliseconds.
    static let patienceMilliseconds: Int64 = 5_000

    /// The uptime in milliseconds at which to ask; nil for never.
    private(set) var askAt: Int64?
    private var isWaiting = false
    /// Whether the leader's lease is to be taken from it, and the shell knows.
    private var isSilent = false

    mutating func hurry(at now: ClockReading) { (askAt, isSilent) = (now.uptime, false) }

    /// - Returns: Whether to ask now.
    mutating func look(at driver: borrowing Driver, at now: ClockReading) -> Bool {
        guard !driver.engine.isLeading, driver.signedIn != nil else {
            (askAt, isWaiting) = (nil, false)
            return false
        }
        let waits = !driver.engine.waiting.isEmpty || !driver.engine.meta.hasCompletedFirstSync
        if waits, !isWaiting { askAt = askAt ?? now.uptime + Self.patienceMilliseconds }
        isWaiting = waits
        guard let askAt, askAt <= now.uptime else { return false }
        self.askAt = nil
        return true
    }

    /// - Returns: Whether the leader has been found to stand still.
    mutating func seizes(_ driver: borrowing Driver) -> Bool {
        let wasSilent = isSilent
        isSilent =
            driver.engine.leader?.isSilent ?? false && driver.signedIn != nil
            && driver.diskFailure == nil
        return isSilent && !wasSilent
    }
}
