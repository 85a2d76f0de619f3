// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Whether the server does its work: the last round of its housekeeping, which reads the database
/// on both kinds of threads, was not long ago.
///
/// State: `round` and `full`, guarded by being atomic. Who asks costs the storage nothing.
final class Readiness: Sendable {
    private let round = Atomic<Int64>(.min)
    private let full = Atomic(false)
    private let clock: ServerClock

    /// A round comes each second; a flush of the disk may take a few.
    private static let milliseconds: Int64 = 5_000

    init(clock: ServerClock) { self.clock = clock }

    func roundEnded() { round.store(clock.uptime(), ordering: .relaxed) }
    func stop() { round.store(.min, ordering: .relaxed) }

    /// The disk is full.
    var isFull: Bool {
        get { full.load(ordering: .relaxed) }
        set { full.store(newValue, ordering: .relaxed) }
    }

    var isReady: Bool {
        if isFull { return false }
        let last = round.load(ordering: .relaxed)
        return last != .min && clock.uptime() - last <= Self.milliseconds
    }
}
