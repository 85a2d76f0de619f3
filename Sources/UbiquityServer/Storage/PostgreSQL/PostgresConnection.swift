// SPDX-License-Identifier: Apache-2.0

internal import CLibpq
internal import Foundation
internal import UbiquityCore

/// A connection to PostgreSQL: libpq in its pipeline mode. Statements are sent in flights: several
/// at once, with one wait for all of their results. Nothing waits without a deadline.
///
/// State: everything is confined to the one thread that uses the connection at a time, which the
/// pool decides. Unchecked because the compiler does not know that.
final class PostgresConnection: @unchecked Sendable {
    /// A prepared statement: the server decides the types of its results by its parameters' types.
    private struct Prepared: Hashable {
        var sql: String
        var types: [Oid]
    }

    /// One result to come.
    private enum Awaited {
        case preparation(Prepared, name: String)
        case statement
        case other
    }

    private let handle: OpaquePointer
    private let notices = PostgresNotices()
    private var prepared: [Prepared: String] = [:]
    private var namesCount = 0
    /// Whether it must not be used again.
    private(set) var isBroken = false
    /// The server that it leads to; nil if that is not known.
    private(set) var primary: DatabaseHistory.Primary?

    /// More than the program has. Beyond it, all are prepared anew.
    private static let preparedMax = 400

    /// One of several hosts: the settings that name it alone.
    typealias Host = [(name: String, value: String)]

    /// Connects, which blocks for at most some seconds for each of the address's hosts.
    /// - Parameter host: The only host to try; nil for all of them, in their order.
    init(_ settings: PostgresSettings, host: Host = []) throws(PostgresFailure) {
        guard libpq_load() else { throw .lost(Self.libraryMissing) }
        guard let handle = Self.connect(settings.url, host) else { throw .lost("out of memory") }
        self.handle = handle
        guard PQstatus(handle) == CONNECTION_OK else {
            isBroken = true
            throw Self.connectionFailure(handle, settings.url)
        }
        PQsetErrorContextVisibility(handle, PQSHOW_CONTEXT_NEVER)
        PQsetNoticeReceiver(handle, PostgresNotices.receive, notices.address)
        guard PQsetnonblocking(handle, 1) == 0, PQenterPipelineMode(handle) == 1 else {
            isBroken = true
            throw .lost("pipeline mode is not available")
        }
        _ = try run([Self.setUp(settings)], milliseconds: settings.answerMilliseconds)
    }

    deinit { PQfinish(handle) }

    /// The settings before the address can be changed by it; those after it cannot.
    private static func connect(_ url: String, _ host: Host) -> OpaquePointer? {
        let settings: Host =
            [
                ("application_name", "ubiquity"), ("connect_timeout", "5"),
                ("tcp_user_timeout", "10000"), ("keepalives_idle", "10"),
                ("keepalives_interval", "3"),
                ("keepalives_count", "3"), ("dbname", url), ("client_encoding", "UTF8"),
                ("target_session_attrs", "read-write"),
            ] + host
        let names = settings.map { strdup($0.0) } + [nil]
        let values = settings.map { strdup($0.1) } + [nil]
        defer { (names + values).forEach { free($0) } }
        return names.map { UnsafePointer($0) }.withUnsafeBufferPointer { names in
            values.map { UnsafePointer($0) }.withUnsafeBufferPointer { values in
                PQconnectdbParams(names.baseAddress, values.baseAddress, 1)
            }
        }
    }

    /// A session never commits without the flush of the log, and not without a standby where one is
    /// required, whatever its role's defaults are. Without a limit of TCP, a node that stops while the
    /// server sends to it would keep its locks: no other time-out ends that. Plans look rows up by their keys: a table that is
    /// still small may be large in a minute.
    private static func setUp(_ settings: PostgresSettings) -> SQLStatement {
        SQLStatement(
            """
            SELECT set_config('statement_timeout', $1, false),
                set_config('lock_timeout', $2, false),
                set_config('idle_in_transaction_session_timeout', $3, false),
                set_config('default_transaction_isolation', 'read committed', false),
                set_config('default_transaction_read_only', 'off', false),
                set_config('client_min_messages', 'warning', false),
                set_config('search_path', 'pg_catalog', false),
                set_config('tcp_user_timeout', '10000', false),
                set_config('enable_seqscan', 'off', false),
                set_config('enable_hashjoin', 'off', false),
                set_config('enable_mergejoin', 'off', false),
                set_config('enable_bitmapscan', 'off', false),
                set_config('jit', 'off', false),
                set_config('plan_cache_mode', 'force_generic_plan', false),
                set_config('synchronous_commit', CASE
                    WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
                    ELSE current_setting('synchronous_commit') END, false)
            """,
            .text("\(settings.statementMilliseconds)"), .text("\(settings.lockMilliseconds)"),
            .text("\(settings.idleInTransactionMilliseconds)"))
    }

    /// Finds out which server it leads to.
    func findPrimary(milliseconds: Int64) throws -> DatabaseHistory.Primary {
        let results = try run([PostgresMoment.readingPrimary], milliseconds: milliseconds)
        guard let row = results[0].rows.first else { throw StorageError.unreadable }
        let primary = try PostgresMoment.primary(row, from: 0)
        self.primary = primary
        return primary
    }

    /// The hosts of the address, wherever that has them from; empty if it is one.
    var hosts: [Host] {
        var lists: [String: [String]] = [:]
        guard let options = PQconninfo(handle) else { return [] }
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                lists[String(cString: keyword)] = String(cString: value)
                    .split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            }
            option += 1
        }
        let lengths = ["host", "hostaddr"].map { lists[$0]?.count ?? 0 }
        guard let count = lengths.max(), count > 1 else { return [] }
        return (0..<count).map { index in
            ["host", "hostaddr", "port"].compactMap { name in
                guard let list = lists[name], let last = list.last else { return nil }
                let value = index < list.count ? list[index] : last
                return (name, value.isEmpty && name == "port" ? "5432" : value)
            }
        }
    }

    /// The version of the server, such as 150020.
    var serverVersion: Int32 { PQserverVersion(handle) }

    /// As people know it, such as `15.20`.
    var serverVersionText: String {
        PQparameterStatus(handle, "server_version").map { String(cString: $0) }
            ?? "\(serverVersion)"
    }

    /// For ``wait(for:until:)`` of someone who waits for other things too.
    var socket: Int32 { PQsocket(handle) }

    // MARK: - Flights

    /// The SQLSTATEs of the warnings during the last flight.
    var warnings: [String] { notices.warnings }

    /// Runs the statements as one flight: sends them all, then waits for their results. After a
    /// failure, the statements after the failed one were not run.
    func run(
        _ statements: [SQLStatement], milliseconds: Int64
    ) throws(PostgresFailure) -> [PostgresResult] {
        guard !isBroken else { throw .lost("the connection is closed") }
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        notices.warnings = []
        do throws(PostgresFailure) {
            var awaited: [Awaited] = []
            for statement in statements { try send(statement, &awaited) }
            guard PQpipelineSync(handle) == 1 else { throw lost() }
            return try receive(awaited, until: deadline)
        } catch {
            if error.breaksConnection || PQstatus(handle) != CONNECTION_OK { isBroken = true }
            if error == .silent { cancel() }
            throw error
        }
    }

    /// Asks the server to end what it does for this connection. Otherwise a commit that waits for a
    /// standby would keep its locks, and its place, until there is one: no time-out of the server's
    /// ends that. On a thread of its own, because libpq waits for the server.
    private func cancel() {
        guard let cancel = PQgetCancel(handle) else { return }
        let address = UInt(bitPattern: cancel)
        Thread.detachNewThread {
            guard let cancel = OpaquePointer(bitPattern: address) else { return }
            var reason = [CChar](repeating: 0, count: 256)
            PQcancel(cancel, &reason, Int32(reason.count))
            PQfreeCancel(cancel)
        }
    }

    /// Has the connection not used again.
    func giveUp() { isBroken = true }

    private func send(
        _ statement: SQLStatement, _ awaited: inout [Awaited]
    ) throws(PostgresFailure) {
        let types = statement.values.map(\.type)
        let key = Prepared(sql: statement.sql, types: types)
        var name = prepared[key]
        if name == nil, let new = try prepare(key, &awaited) { name = new }
        let isSent = PostgresParameters(statement.values).with { count, values, lengths, formats in
            PQsendQueryPrepared(handle, name, count, values, lengths, formats, 1)
        }
        guard isSent == 1 else { throw lost() }
        awaited.append(.statement)
    }

    private func prepare(
        _ key: Prepared, _ awaited: inout [Awaited]
    ) throws(PostgresFailure) -> String? {
        if prepared.count >= Self.preparedMax {
            prepared = [:]
            let isSent = PQsendQueryParams(handle, "DEALLOCATE ALL", 0, nil, nil, nil, nil, 0)
            guard isSent == 1 else { throw lost() }
            awaited.append(.other)
        }
        // The same statement may be twice in a flight.
        for case .preparation(let other, let name) in awaited where other == key { return name }
        namesCount += 1
        let name = "s\(namesCount)"
        guard PQsendPrepare(handle, name, key.sql, Int32(key.types.count), key.types) == 1 else {
            throw lost()
        }
        awaited.append(.preparation(key, name: name))
        return name
    }

    private func receive(
        _ awaited: [Awaited], until deadline: ContinuousClock.Instant
    ) throws(PostgresFailure) -> [PostgresResult] {
        var results: [PostgresResult] = []
        results.reserveCapacity(awaited.count)
        var failure: PostgresFailure?
        for item in awaited {
            let result = try next(until: deadline)
            switch (result?.status, item) {
            case (PGRES_COMMAND_OK, .preparation(let key, let name)): prepared[key] = name
            case (PGRES_COMMAND_OK, .statement), (PGRES_TUPLES_OK, .statement):
                results.append(PostgresResult(result!))
            case (PGRES_COMMAND_OK, _), (PGRES_PIPELINE_ABORTED, _): break
            default:
                failure = failure ?? result.map { self.failure($0) } ?? lost()
                if failure?.breaksConnection == true { throw failure! }
            }
            // Each result is followed by its end.
            guard try next(until: deadline) == nil else { throw lost() }
        }
        let sync = try next(until: deadline)
        guard sync?.status == PGRES_PIPELINE_SYNC else {
            throw sync.map { self.failure($0) } ?? lost()
        }
        if let failure { throw failure }
        return results
    }

    private func next(
        until deadline: ContinuousClock.Instant
    ) throws(PostgresFailure) -> PostgresResultHandle? {
        while PQisBusy(handle) == 1 {
            guard try exchange(until: deadline) else { throw .silent }
        }
        return PQgetResult(handle).map { PostgresResultHandle($0) }
    }

    private func failure(_ result: PostgresResultHandle) -> PostgresFailure {
        let state = result.field("C")
        let message = result.field("M")
        guard !state.isEmpty else { return lost() }
        return PostgresFailure(state: state, message: message)
    }

    // MARK: - The socket

    /// Sends what waits to be sent and takes what has arrived, whichever comes first, so that both
    /// sides may send much at once.
    /// - Returns: False if nothing happened before the deadline.
    private func exchange(
        until deadline: ContinuousClock.Instant
    ) throws(PostgresFailure) -> Bool {
        let unsent = PQflush(handle)
        guard unsent >= 0 else { throw lost() }
        let events = Int16(POLLIN) | (unsent > 0 ? Int16(POLLOUT) : 0)
        let happened = Self.wait(for: [(socket, events)], until: deadline)[0]
        guard happened != 0 else { return false }
        if happened & ~Int16(POLLOUT) != 0, PQconsumeInput(handle) == 0 { throw lost() }
        return true
    }

    /// Waits for events on file descriptors.
    /// - Returns: The events of each; all 0 if there was none before the deadline.
    static func wait(
        for descriptors: [(Int32, Int16)], until deadline: ContinuousClock.Instant
    ) -> [Int16] {
        var polled = descriptors.map { pollfd(fd: $0.0, events: $0.1, revents: 0) }
        while true {
            let rest = (deadline - .now) / .milliseconds(1)
            let milliseconds = Int32(max(0, min(rest.rounded(.up), 3_600_000)))
            let count = poll(&polled, nfds_t(polled.count), milliseconds)
            if count > 0 || count == 0 && deadline <= .now { return polled.map(\.revents) }
            if count < 0, errno != EINTR { return polled.map { _ in Int16(POLLERR) } }
        }
    }

    struct Notification: Hashable {
        var channel: String
        var payload: String
        /// Whether this connection sent it.
        var isOwn: Bool
    }

    /// The notifications that have arrived. Does not wait.
    func notifications() throws(PostgresFailure) -> [Notification] {
        guard !isBroken else { throw .lost("the connection is closed") }
        guard PQconsumeInput(handle) == 1 else {
            isBroken = true
            throw lost()
        }
        var found: [Notification] = []
        while let notification = PQnotifies(handle) {
            found.append(
                Notification(
                    channel: String(cString: notification.pointee.relname),
                    payload: String(cString: notification.pointee.extra),
                    isOwn: notification.pointee.be_pid == PQbackendPID(handle)))
            PQfreemem(notification)
        }
        return found
    }

    private func lost() -> PostgresFailure {
        .lost(Self.line(PQerrorMessage(handle)) ?? "the connection was lost")
    }

    static let addressUnreadable = "the address cannot be read"
    static let libraryMissing = "libpq.so.5 cannot be loaded"

    /// A sentence about an address may contain some of its password, if that has an "@" in
    /// it. Then it is not told.
    private static func connectionFailure(
        _ handle: OpaquePointer, _ url: String
    ) -> PostgresFailure {
        guard let options = PQconninfoParse(url, nil) else { return .lost(addressUnreadable) }
        PQconninfoFree(options)
        let message = line(PQerrorMessage(handle)) ?? "no connection"
        guard !message.contains("@") else { return .lost("no connection") }
        return .lost(message)
    }

    /// libpq's sentences as one line; nil if there are none.
    private static func line(_ text: UnsafeMutablePointer<CChar>?) -> String? {
        let lines = text.map { String(cString: $0) }?.split(whereSeparator: \.isNewline) ?? []
        guard !lines.isEmpty else { return nil }
        return lines.map { $0.trimmingCharacters(in: .whitespaces) }.joined(separator: "; ")
    }
}

/// Collects the warnings of a connection.
private final class PostgresNotices {
    var warnings: [String] = []

    var address: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    static let receive: PQnoticeReceiver = { address, result in
        let code = Int32(UInt8(ascii: "C"))
        guard let address, let state = PQresultErrorField(result, code) else { return }
        let notices = Unmanaged<PostgresNotices>.fromOpaque(address).takeUnretainedValue()
        // Nobody wants to know more than that there were many.
        if notices.warnings.count < 16 { notices.warnings.append(String(cString: state)) }
    }
}
