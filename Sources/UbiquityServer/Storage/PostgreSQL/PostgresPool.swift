// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// The connections of a storage: at most a number of them, made when they are needed.
///
/// State: `state`, guarded by its lock; `places` counts the connections that may still be taken.
final class PostgresPool: Sendable {
    private struct State {
        var idle: [PostgresConnection] = []
        /// Changes when a connection breaks. The idle ones of before are likely to be broken too.
        var generation = 0
        /// The number of failed attempts to connect since the last success.
        var failures = 0
        var isClosed = false
    }

    private let settings: PostgresSettings
    private let places: DispatchSemaphore
    private let state = Mutex(State())

    init(_ settings: PostgresSettings) {
        self.settings = settings
        places = DispatchSemaphore(value: max(1, settings.connectionsMax))
    }

    /// Runs the body with a connection of its own, once there is one.
    func with<T>(_ body: (PostgresConnection) throws -> T) throws -> T {
        let wait = DispatchTimeInterval.milliseconds(Int(settings.answerMilliseconds))
        guard places.wait(timeout: .now() + wait) == .success else {
            throw PostgresFailure(state: "53300", message: "all connections of this node are busy")
        }
        defer { places.signal() }
        let (connection, generation) = try take()
        defer { giveBack(connection, generation) }
        return try body(connection)
    }

    private func take() throws -> (PostgresConnection, generation: Int) {
        let (idle, generation, failures, isClosed) = state.withLock { state in
            (state.idle.popLast(), state.generation, state.failures, state.isClosed)
        }
        guard !isClosed else { throw StorageError.failed("the storage is closed") }
        if let idle { return (idle, generation) }
        if failures > 0 {
            Thread.sleep(forTimeInterval: Self.pause(after: failures, secondsMax: 2))
        }
        do {
            let connection = try PostgresConnection(settings)
            state.withLock { $0.failures = 0 }
            return (connection, generation)
        } catch {
            state.withLock { $0.failures += 1 }
            throw error
        }
    }

    private func giveBack(_ connection: PostgresConnection, _ generation: Int) {
        let closed = state.withLock { state -> [PostgresConnection] in
            if connection.isBroken {
                defer { state.idle = [] }
                state.generation += 1
                return state.idle
            }
            if state.generation == generation, !state.isClosed { state.idle.append(connection) }
            return []
        }
        // Not under the lock.
        _ = consume closed
    }

    /// Grows with each failure, and is a random part of that, so that nodes do not come together.
    static func pause(after failures: Int, secondsMax: TimeInterval) -> TimeInterval {
        let most = min(secondsMax, 0.05 * Double(1 << min(failures, 6)))
        return .random(in: most / 2...most)
    }

    /// Closes the idle connections, and others when they are given back.
    func close() {
        let closed = state.withLock { state in
            defer { state.idle = [] }
            state.isClosed = true
            return state.idle
        }
        _ = consume closed
    }
}
