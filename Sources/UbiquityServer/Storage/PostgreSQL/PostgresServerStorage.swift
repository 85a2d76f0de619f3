// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// The storage in a PostgreSQL database, which other nodes use too.
///
/// State: the pool and the news are thread-safe. `wentBack`, `full` and `vacuuming` are guarded by
/// their locks, since several threads commit. Nothing of records, stores or devices is remembered.
final class PostgresServerStorage: SQLStorage {
    typealias DatabaseTransaction = PostgresTransaction

    let settings: PostgresSettings
    let pool: PostgresPool
    let news: PostgresNews
    /// Reads a ``PostgresMoment``.
    let momentStatement: SQLStatement
    /// Statements that fail if a commit is not permitted.
    let commitGuards: [SQLStatement]
    /// Names this node in its leases.
    let node = Int64.random(in: 1 ... .max)
    /// The way in which the database went back, after which nothing is committed; nil if it did not.
    let wentBack = Mutex<String?>(nil)
    let full = Mutex(Fullness())
    let vacuuming = Mutex(VacuumState())

    /// Examines nothing yet.
    /// - Parameter hasTimelines: Whether the engine has timelines and permits to read them.
    init(_ settings: PostgresSettings, pool: PostgresPool, hasTimelines: Bool = false) {
        self.settings = settings
        self.pool = pool
        news = PostgresNews(settings, pool: pool)
        momentStatement = PostgresMoment.reading(hasTimelines: hasTimelines)
        commitGuards = settings.requiresSynchronousStandby ? [PostgresTransaction.standbyGuard] : []
    }

    static let beginWriting = SQLStatement("BEGIN ISOLATION LEVEL READ COMMITTED")
    static let beginReading = SQLStatement("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    /// Reads one moment by a statement, in one flight, and again if the connection is lost.
    func reading<T>(
        _ statement: SQLStatement, _ body: (PostgresResult) throws -> T
    ) throws(StorageError) -> T {
        try reading([statement]) { results, _ in try body(results[0]) }
    }

    /// Reads one moment by several statements, in one flight, and again if the connection is lost.
    func reading<T>(
        _ statements: [SQLStatement],
        _ body: ([PostgresResult], PostgresConnection) throws -> T
    ) throws(StorageError) -> T {
        try attempt { _ in
            _ = try checkHistory()
            return try pool.with { try body(results(of: statements, $0), $0) }
        }
    }

    private func results(
        of statements: [SQLStatement], _ connection: PostgresConnection
    ) throws -> [PostgresResult] {
        let milliseconds = settings.answerMilliseconds
        // A statement alone reads one moment by itself.
        guard statements.count > 1 else {
            return try connection.run(statements, milliseconds: milliseconds)
        }
        let transaction = PostgresTransaction(
            connection, [Self.beginReading], milliseconds: milliseconds)
        do {
            return try transaction.run(statements + [SQLStatement("COMMIT")]).dropLast()
        } catch {
            transaction.rollBack()
            throw error
        }
    }

    /// For reads that depend on one another. Runs the body in one transaction that reads one moment,
    /// and again if the connection is lost.
    /// - Parameter milliseconds: The longest time that a statement may take; nil for the usual one.
    func reading<T>(
        milliseconds: Int64? = nil, _ body: (PostgresTransaction) throws -> T
    ) throws(StorageError) -> T {
        try transact(Self.beginReading, guards: [], milliseconds, body)
    }

    /// Runs the body in one transaction at READ COMMITTED, which an error rolls back. Runs it again
    /// after a failure that may pass, for some seconds, also if it may have been committed.
    /// - Parameter milliseconds: As for reading.
    func writing<T>(
        milliseconds: Int64?, _ body: (PostgresTransaction) throws -> T
    ) throws(StorageError) -> T {
        try transact(Self.beginWriting, guards: commitGuards, milliseconds, body)
    }

    func writing<T>(
        _ body: (PostgresTransaction) throws -> T, news: (T) -> [StorageNews]
    ) throws(StorageError) -> T {
        let result = try writing(milliseconds: nil, body)
        announce(news(result))
        return result
    }

    private func transact<T>(
        _ begin: SQLStatement, guards: [SQLStatement], _ milliseconds: Int64?,
        _ body: (PostgresTransaction) throws -> T
    ) throws(StorageError) -> T {
        var beginning = [begin]
        if let milliseconds {
            beginning.append(
                SQLStatement(
                    "SELECT set_config('statement_timeout', $1, true)", .text("\(milliseconds)")))
        }
        let answer = milliseconds.map { $0 + 5_000 } ?? settings.answerMilliseconds
        return try attempt { mayBeRepeated in
            _ = try checkHistory()
            return try pool.with { connection in
                try PostgresTransaction(
                    connection, beginning, guards: guards, milliseconds: answer,
                    mayBeRepeated: mayBeRepeated
                ).committing(body)
            }
        }
    }

    /// Runs the body again, after a random pause that grows, as long as its failure may pass: see
    /// ``Attempts``.
    /// - Parameter body: Is told whether an earlier attempt may have been committed.
    private func attempt<T>(
        _ body: (_ mayBeRepeated: Bool) throws -> T
    ) throws(StorageError) -> T {
        var attempts = Attempts(patience: settings.patienceMilliseconds)
        while true {
            do { return try body(attempts.isInDoubt) } catch var failure as PostgresFailure {
                let pause = attempts.failed(
                    isTransient: failure.isTransient, isInDoubt: failure.isInDoubt,
                    now: Self.uptime)
                failure.isInDoubt = attempts.isInDoubt
                guard let pause else { throw StorageError(postgres: failure) }
                Self.rest(atMost: pause)
            } catch { throw StorageError(postgres: error) }
        }
    }

    static var uptime: Int64 { ServerClock.system.uptime() }

    static func rest(atMost milliseconds: Int64) {
        let most = Double(milliseconds) / 1_000
        Thread.sleep(forTimeInterval: .random(in: most / 2...most))
    }

    // MARK: - Nodes

    var isShared: Bool { true }
    var isMoved: Bool { false }

    /// The pool is for pushes, reads, and the chores on one more thread.
    var commitLanes: Int { max(1, settings.connectionsMax / 2) }
    var readLanes: Int { max(1, settings.connectionsMax - commitLanes - 1) }

    func observe(_ observer: @escaping @Sendable (StorageNews) -> Void) {
        news.follow(observer) { [self] connection in
            // Notices within seconds that the database went back, also without a commit.
            let floor = try checkHistory()
            let results = try connection.run(
                [momentStatement], milliseconds: settings.answerMilliseconds)
            try note(PostgresMoment(results[0]), [], since: floor, on: connection)
        }
    }

    /// Tells the other nodes what was committed. Only a hint, which may be lost; does not wait for
    /// it on a server.
    func announce(_ items: [StorageNews]) {
        guard !items.isEmpty, !news.announce(items) else { return }
        // A command, which does not listen.
        _ = try? pool.with { connection in
            try PostgresNews.send(items, connection, milliseconds: settings.answerMilliseconds)
        }
    }

    func lease(for milliseconds: Int64) throws(StorageError) -> Bool {
        try writing { transaction in
            try transaction.run(
                """
                INSERT INTO ubiquity.lease AS l (name, holder, until)
                VALUES ('chores', $1, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2)
                ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
                WHERE l.holder = excluded.holder OR l.until <= excluded.until - $2
                """, .integer(node), .integer(milliseconds)
            ).changes > 0
        }
    }

    func sharedFigures() throws(StorageError) -> SharedFigures? {
        let statement = SQLStatement(
            """
            SELECT pg_database_size(current_database()), count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name ~ $1
            """, .text("^\(PostgresNews.sessionName(connections: "[0-9]{1,6}"))$"))
        return try reading(statement) { result in
            try result.rows.first.map { row in
                SharedFigures(bytes: try row.count(0), nodes: try row.count(1))
            }
        }
    }

    func clock() throws(StorageError) -> Int64? { try moment().now }
    func history() throws(StorageError) -> UInt64? { try moment().history.name }

    private func moment() throws(StorageError) -> PostgresMoment {
        let floor = try checkHistory()
        return try reading([momentStatement]) { results, connection in
            let moment = try PostgresMoment(results[0])
            try note(moment, [], since: floor, on: connection)
            return moment
        }
    }

    // MARK: - History

    /// - Returns: What is known of the database's history before something new is read.
    /// - Throws: If the database went back.
    func checkHistory() throws(StorageError) -> HistoryWatch.Floor {
        if let reason = wentBack.withLock(\.self) { throw .wentBack(reason) }
        return pool.watch.withLock(\.floor)
    }

    /// - Throws: ``StorageError`` if the database went back, ``PostgresFailure`` if the connection
    ///   leads to one that was replaced.
    func note(
        _ moment: PostgresMoment, _ revisions: [HistoryWatch.Revision],
        since floor: HistoryWatch.Floor, on connection: PostgresConnection
    ) throws {
        let sight = HistoryWatch.Sight(
            history: moment.history, log: moment.log, revisions: revisions)
        switch pool.watch.withLock({ $0.note(sight, since: floor) }) {
        case .trusted: return
        case .replaced:
            connection.giveUp()
            throw PostgresFailure.replaced
        case .wentBack(let reason):
            let isFirst = wentBack.withLock { known in
                defer { known = known ?? reason }
                return known == nil
            }
            if isFirst {
                renewIncarnation(moment.incarnation)
                news.hear(.historyWentBack(reason))
            }
            throw StorageError.wentBack(reason)
        }
    }

    /// Looks whether a position that is not of the store's history is of a newer one, which is on
    /// another server: this node may know only a primary that was replaced.
    /// - Throws: ``PostgresFailure`` then, from now on for each connection to this server.
    func refuseIfReplaced(
        _ position: Position, of store: StoreReference, on connection: PostgresConnection
    ) throws {
        let floor = try checkHistory()
        let results = try connection.run(
            [momentStatement], milliseconds: settings.answerMilliseconds)
        let moment = try PostgresMoment(results[0])
        try note(moment, [], since: floor, on: connection)
        try refuseIfReplaced(moment, namedBy: position, of: store, on: connection)
    }

    /// - Parameter moment: Read on the connection.
    func refuseIfReplaced(
        _ moment: PostgresMoment, namedBy position: Position, of store: StoreReference,
        on connection: PostgresConnection
    ) throws {
        guard let successor = moment.successor(namedBy: position, of: store) else { return }
        _ = pool.watch.withLock { $0.meet(successor) }
        connection.giveUp()
        throw PostgresFailure.replaced
    }

    /// Starts a new history before anybody goes on, so that no cursor of the lost one is valid. On
    /// a thread of its own, because this one has a connection already.
    private func renewIncarnation(_ old: Int64) {
        Thread.detachNewThread { [settings, pool] in
            try? Self.transact(pool.connect(), settings) { transaction in
                _ = try transaction.run([PostgresSchema.renewingIncarnation(old)])
            }
        }
    }

    /// No other call may follow.
    func close() throws(StorageError) {
        news.close()
        pool.close()
    }
}

extension StorageError {
    fileprivate static func wentBack(_ reason: String) -> StorageError {
        .failed("the database has lost what it had confirmed: \(reason)")
    }
}
