// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import Synchronization

/// Health checks for monitoring: whether the server is alive, and whether it can work. Strangers
/// may ask, and learn nothing else.
struct HealthRoutes: Sendable {
    let readiness: Readiness
    let logger: Logger

    /// Answering is enough.
    @Sendable func live(_ exchange: Exchange) async throws -> Answer {
        Self.fine
    }

    @Sendable func ready(_ exchange: Exchange) async throws -> Answer {
        guard !readiness.isReady else { return Self.fine }
        if readiness.shouldLog() { logger.error("The server is not ready.") }
        throw Problem.notReady
    }

    private static var fine: Answer {
        Answer(
            headers: ["Content-Type": "application/json"],
            body: ByteBuffer(string: "{\"status\":\"ok\"}"))
    }
}

/// Whether the server is working: the last round of its housekeeping, which reads the database on
/// both kinds of threads, was recent.
///
/// State: `state`, guarded by its mutex. A check costs the storage nothing.
final class Readiness: Sendable {
    private struct State {
        /// The uptime of the last round; nil before the first one, and when the server stops.
        var round: Int64?
        var isFull = false
        var isMoved = false
        var isClockWrong = false
        /// The reports in the log that the server is not ready.
        var logging = Interval(milliseconds: 60_000)
        /// The interval of warnings that the clock is wrong.
        var clockLogging = Interval(milliseconds: 60_000)
    }

    private let state = Mutex(State())
    private let clock: ServerClock

    /// A round comes every second; a flush of the disk may take a few.
    private static let milliseconds: Int64 = 5_000

    init(clock: ServerClock) { self.clock = clock }

    func roundEnded() { state.withLock { $0.round = clock.uptime() } }
    func stop() { state.withLock { $0.round = nil } }

    /// Whether the disk is full.
    var isFull: Bool {
        get { state.withLock { $0.isFull } }
        set { state.withLock { $0.isFull = newValue } }
    }

    /// Whether the data folder was moved or removed.
    var isMoved: Bool {
        get { state.withLock { $0.isMoved } }
        set { state.withLock { $0.isMoved = newValue } }
    }

    /// Whether the clock differs too much from the storage's.
    var isClockWrong: Bool { state.withLock { $0.isClockWrong } }

    /// Takes note of a comparison of the clocks.
    /// - Returns: Whether to log it: at once, and then once a minute.
    func compareClock(isWrong: Bool) -> Bool {
        state.withLock { state in
            if isWrong != state.isClockWrong { state.clockLogging = Interval(milliseconds: 60_000) }
            state.isClockWrong = isWrong
            return isWrong && state.clockLogging.isOver(now: clock.uptime())
        }
    }

    /// Whether to log that the server is not ready: once a minute, however often it is checked.
    func shouldLog() -> Bool {
        state.withLock { $0.logging.isOver(now: clock.uptime()) }
    }

    var isReady: Bool {
        let now = clock.uptime()
        return state.withLock { state in
            guard !state.isFull, !state.isMoved, !state.isClockWrong, let round = state.round
            else { return false }
            return now - round <= Self.milliseconds
        }
    }
}
