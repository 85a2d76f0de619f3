// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// The connections of a storage: at most a number of them, made when they are needed.
///
/// They lead to the newest primary that any of the address's hosts has been: libpq takes the first
/// host that accepts writes, and a primary that was replaced may do that when its machine comes back.
///
/// State: `state` and `watch`, guarded by their locks; `places` counts the connections that may still
/// be taken.
final class PostgresPool: Sendable {
    private struct State {
        var idle: [PostgresConnection] = []
        /// Changes when a connection breaks. The idle ones of before are likely to be broken too.
        var generation = 0
        /// The number of failed attempts to connect since the last success.
        var failures = 0
        var isClosed = false
        /// See ``preferNewest()``.
        var prefersNewest = false
    }

    private let settings: PostgresSettings
    private let places: DispatchSemaphore
    private let state = Mutex(State())
    /// The database's history, as far as it is known.
    let watch = Mutex(HistoryWatch())

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
        if let idle, isReplaced(idle) {
            _ = consume idle
            return try take()
        }
        guard !isClosed else { throw StorageError.failed("the storage is closed") }
        if let idle { return (idle, generation) }
        if failures > 0 {
            Thread.sleep(forTimeInterval: Self.pause(after: failures, secondsMax: 2))
        }
        do {
            let connection = try connect()
            state.withLock { $0.failures = 0 }
            return (connection, generation)
        } catch {
            state.withLock { $0.failures += 1 }
            throw error
        }
    }

    /// Has new connections lead to the newest primary from now on. The engine must have timelines.
    func preferNewest() {
        let before = state.withLock { state in
            state.prefersNewest = true
            defer { state.idle = [] }
            return state.idle
        }
        _ = consume before
    }

    private func isReplaced(_ connection: PostgresConnection) -> Bool {
        connection.primary.map { primary in watch.withLock { $0.isReplaced(primary) } } ?? false
    }

    /// A new connection outside the pool. If it leads to another primary than the last ones did,
    /// or to the first one found, looks at all hosts: that primary may have been replaced, and the
    /// new one may only have failed for a moment.
    func connect() throws -> PostgresConnection {
        let first = try PostgresConnection(settings)
        guard state.withLock(\.prefersNewest) else { return first }
        let primary = try first.findPrimary(milliseconds: settings.answerMilliseconds)
        guard watch.withLock({ $0.primary != primary }) else { return first }
        let found = [first] + first.hosts.compactMap(connection(to:))
        let primaries = found.compactMap(\.primary)
        watch.withLock { watch in for primary in primaries { _ = watch.meet(primary) } }
        guard let newest = found.first(where: { !isReplaced($0) }) else {
            throw PostgresFailure.replaced
        }
        return newest
    }

    /// Nil if the host does not answer, or is a standby.
    private func connection(to host: PostgresConnection.Host) -> PostgresConnection? {
        let found = try? PostgresConnection(settings, host: host)
        let primary = try? found?.findPrimary(milliseconds: settings.answerMilliseconds)
        return primary == nil ? nil : found
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
