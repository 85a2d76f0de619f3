// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// Listens to what all nodes announce, and announces what this one commits, on one thread with a
/// connection of its own. The more there is to announce, the more goes into one transaction.
///
/// Announcing takes a lock of the whole server until its commit is on the disk. So it is not part of
/// the commit that it tells of, and does not wait for the disk.
///
/// State: `state`, guarded by its lock. Everything else is confined to the thread.
final class PostgresNews: Sendable {
    typealias Observer = @Sendable (StorageNews) -> Void
    /// Called each second on the listening connection.
    typealias Look = @Sendable (PostgresConnection) throws -> Void

    private struct State {
        var observer: Observer?
        var positions: [StoreReference: Position] = [:]
        var others: Set<StorageNews> = []
        var isClosed = false

        var isEmpty: Bool { positions.isEmpty && others.isEmpty }
    }

    private let settings: PostgresSettings
    private let pool: PostgresPool
    private let state = Mutex(State())
    /// Wakes the thread.
    private let wake = WakePipe()
    /// Signalled when the thread ends.
    private let ended = DispatchSemaphore(value: 0)
    /// The channel on which this node hears itself.
    private let ownChannel = "ubiquity_\(DeviceID.random())"

    private static let channel = "ubiquity"
    private static let pingSeconds = 1.0
    /// Without a ping that came back for this long, the connection is given up.
    private static let silenceSeconds = 3.0
    private static let flightMilliseconds: Int64 = 3_000
    /// The most positions that wait to be announced. Beyond that, everybody is told to look.
    private static let waitingMax = 8_192

    /// - Parameter pool: Makes the connection, and does not keep it.
    init(_ settings: PostgresSettings, pool: PostgresPool) {
        (self.settings, self.pool) = (settings, pool)
    }

    /// The name of the listening session, which tells other nodes how many connections this one may
    /// make.
    static func sessionName(connections: String) -> String {
        "ubiquity node, \(connections) connections"
    }

    // MARK: - From other threads

    /// Begins to listen. Call once.
    func follow(_ observer: @escaping Observer, look: @escaping Look) {
        state.withLock { $0.observer = observer }
        let thread = Thread { [self] in
            run(look)
            ended.signal()
        }
        thread.name = "news"
        thread.start()
    }

    func hear(_ news: StorageNews) { state.withLock { $0.observer }?(news) }

    /// - Returns: False if nobody listens, so that nothing will be announced.
    func announce(_ news: [StorageNews]) -> Bool {
        let isListening = state.withLock { state in
            guard state.observer != nil, !state.isClosed else { return false }
            for item in news {
                if case .committed(let store, let position) = item {
                    state.positions[store] = position
                } else {
                    state.others.insert(item)
                }
            }
            if state.positions.count > Self.waitingMax {
                state.positions = [:]
                state.others.insert(.anything)
            }
            return true
        }
        if isListening { wake.ring() }
        return isListening
    }

    /// Ends the thread, after what is left to announce.
    func close() {
        let isListening = state.withLock { state in
            defer { state.isClosed = true }
            return state.observer != nil && !state.isClosed
        }
        guard isListening else { return }
        wake.ring()
        _ = ended.wait(timeout: .now() + .milliseconds(Int(Self.flightMilliseconds)))
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func take() -> [StorageNews] {
        state.withLock { state in
            defer { (state.positions, state.others) = ([:], []) }
            return state.others + state.positions.map { .committed($0.key, $0.value) }
        }
    }

    // MARK: - The thread

    private func run(_ look: Look) {
        var failures = 0
        while !isClosed {
            do {
                let connection = try pool.connect()
                try listen(connection)
                failures = 0
                // Something may have happened in between.
                hear(.anything)
                try follow(connection, look)
            } catch {
                failures += 1
                wait(PostgresPool.pause(after: failures, secondsMax: 1))
            }
        }
    }

    /// Begins to listen: every later commit is heard.
    private func listen(_ connection: PostgresConnection) throws {
        let name = Self.sessionName(connections: "\(settings.connectionsMax + 1)")
        _ = try connection.run(
            [
                SQLStatement("SELECT set_config('application_name', $1, false)", .text(name)),
                SQLStatement("LISTEN \(Self.channel)"),
                SQLStatement("LISTEN \(ownChannel)"),
            ], milliseconds: Self.flightMilliseconds)
    }

    private func follow(_ connection: PostgresConnection, _ look: Look) throws {
        var heard = ContinuousClock.now
        var ping = heard
        while true {
            let isClosed = isClosed
            let news = take()
            do {
                if !news.isEmpty {
                    try Self.send(news, connection, milliseconds: Self.flightMilliseconds)
                }
            } catch {
                // Nobody has heard it, so everybody is to look.
                _ = announce([.anything])
                throw error
            }
            if isClosed { return }
            if ContinuousClock.now >= ping {
                ping = .now + .seconds(Self.pingSeconds)
                try Self.notify([(ownChannel, "")], connection, Self.flightMilliseconds)
                try look(connection)
            }
            for notification in try connection.notifications() {
                guard notification.channel != ownChannel else {
                    heard = .now
                    continue
                }
                // This node knows what it did itself.
                guard !notification.isOwn else { continue }
                for item in NewsPayload.decode(notification.payload) { hear(item) }
            }
            guard .now - heard < .seconds(Self.silenceSeconds) else { throw PostgresFailure.silent }
            _ = PostgresConnection.wait(
                for: [(connection.socket, Int16(POLLIN)), (wake.reader, Int16(POLLIN))],
                until: ping)
            wake.clear()
        }
    }

    /// Waits for a time, or until the storage is closed.
    private func wait(_ seconds: Double) {
        let end = ContinuousClock.now + .seconds(seconds)
        while !isClosed, ContinuousClock.now < end {
            _ = PostgresConnection.wait(for: [(wake.reader, Int16(POLLIN))], until: end)
            wake.clear()
        }
    }

    /// Announces news in a transaction of its own.
    static func send(
        _ news: [StorageNews], _ connection: PostgresConnection, milliseconds: Int64
    ) throws {
        try notify(NewsPayload.encode(news).map { (channel, $0) }, connection, milliseconds)
    }

    private static func notify(
        _ items: [(channel: String, payload: String)], _ connection: PostgresConnection,
        _ milliseconds: Int64
    ) throws {
        // One statement is a transaction of its own.
        let statement = SQLStatement(
            """
            SELECT set_config('synchronous_commit', 'off', true), pg_notify(channel, payload)
            FROM unnest($1::text[], $2::text[]) AS n (channel, payload)
            """, .texts(items.map(\.channel)), .texts(items.map(\.payload)))
        _ = try connection.run([statement], milliseconds: milliseconds)
    }
}

/// A pipe that wakes a thread which waits for it among other things.
final class WakePipe: Sendable {
    let reader: Int32
    private let writer: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        // Without it, the thread notices after a second.
        if pipe(&ends) == 0 {
            for end in ends { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        }
        (reader, writer) = (ends[0], ends[1])
    }

    deinit {
        _ = Foundation.close(reader)
        _ = Foundation.close(writer)
    }

    func ring() {
        var byte: UInt8 = 1
        // A full pipe wakes too.
        _ = write(writer, &byte, 1)
    }

    func clear() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(reader, &bytes, bytes.count) == bytes.count {}
    }
}
