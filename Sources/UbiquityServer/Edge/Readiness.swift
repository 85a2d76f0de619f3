// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Whether the server is working: the last round of its housekeeping, which reads the database on
/// both kinds of threads, was recent.
///
/// State: `round`, `full` and `told`, which are atomic. A check costs the storage nothing.
final class Readiness: Sendable {
    private let round = Atomic<Int64>(.min)
    private let full = Atomic(false)
    /// When the log last reported that it is not.
    private let told = Atomic<Int64>(.min)
    private let clock: ServerClock

    /// A round comes every second; a flush of the disk may take a few.
    private static let milliseconds: Int64 = 5_000
    private static let tellingMilliseconds: Int64 = 60_000

    init(clock: ServerClock) { self.clock = clock }

    func roundEnded() { round.store(clock.uptime(), ordering: .relaxed) }
    func stop() { round.store(.min, ordering: .relaxed) }

    /// Whether the disk is full.
    var isFull: Bool {
        get { full.load(ordering: .relaxed) }
        set { full.store(newValue, ordering: .relaxed) }
    }

    /// Whether to log that the server is not ready: once a minute, however often it is checked.
    func shouldTell() -> Bool {
        let (last, now) = (told.load(ordering: .relaxed), clock.uptime())
        guard last == .min || now - last >= Self.tellingMilliseconds else { return false }
        return told.compareExchange(expected: last, desired: now, ordering: .relaxed).exchanged
    }

    var isReady: Bool {
        if isFull { return false }
        let last = round.load(ordering: .relaxed)
        return last != .min && clock.uptime() - last <= Self.milliseconds
    }
}
