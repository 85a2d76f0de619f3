// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import UbiquityCore

/// The storage in a PostgreSQL database, which other nodes use too.
///
/// State: the pool is thread-safe. Nothing of records, stores or devices is remembered.
final class PostgresServerStorage: Sendable {
    let settings: PostgresSettings
    let pool: PostgresPool

    /// Connects to a database that has this program's schema.
    init(_ settings: PostgresSettings) throws(ServerStartError) {
        self.settings = settings
        pool = PostgresPool(settings)
    }

    /// Runs the body in one transaction that reads one moment, and again if the connection is lost.
    /// - Parameter milliseconds: The longest time that a statement may take; nil for the usual one.
    func reading<T>(
        milliseconds: Int64? = nil, _ body: (PostgresTransaction) throws -> T
    ) throws(StorageError) -> T {
        try transact("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", milliseconds, body)
    }

    /// Runs the body in one transaction at READ COMMITTED, which an error rolls back. Runs it again
    /// after a failure that may pass, for some seconds, also if it may have been committed.
    func writing<T>(
        milliseconds: Int64? = nil, _ body: (PostgresTransaction) throws -> T
    ) throws(StorageError) -> T {
        try transact("BEGIN ISOLATION LEVEL READ COMMITTED", milliseconds, body)
    }

    private func transact<T>(
        _ begin: String, _ milliseconds: Int64?, _ body: (PostgresTransaction) throws -> T
    ) throws(StorageError) -> T {
        var beginning = [PostgresStatement(begin)]
        if let milliseconds {
            beginning.append(
                PostgresStatement(
                    "SELECT set_config('statement_timeout', $1, true)", .text("\(milliseconds)")))
        }
        let answer = milliseconds.map { $0 + 5_000 } ?? settings.answerMilliseconds
        return try attempt { mayBeRepeated in
            try pool.with { connection in
                let transaction = PostgresTransaction(
                    connection, beginning, milliseconds: answer, mayBeRepeated: mayBeRepeated)
                do {
                    let result = try body(transaction)
                    try transaction.commit()
                    return result
                } catch {
                    transaction.rollBack()
                    throw error
                }
            }
        }
    }

    /// Runs the body again, after a random pause that grows, as long as its failure may pass.
    /// - Parameter body: Is told whether an earlier attempt may have been committed.
    func attempt<T>(_ body: (_ mayBeRepeated: Bool) throws -> T) throws(StorageError) -> T {
        let end = ContinuousClock.now + .milliseconds(settings.patienceMilliseconds)
        var isInDoubt = false
        var pause = 0.005
        while true {
            do { return try body(isInDoubt) } catch var failure as PostgresFailure {
                isInDoubt = isInDoubt || failure.isInDoubt
                failure.isInDoubt = isInDoubt
                guard failure.isTransient, ContinuousClock.now < end else {
                    throw StorageError(postgres: failure)
                }
            } catch { throw StorageError(postgres: error) }
            Thread.sleep(forTimeInterval: .random(in: pause / 2...pause))
            pause = min(2 * pause, 0.5)
        }
    }

    /// Tells the other nodes what was committed. Only a hint, which may be lost; does not block.
    func announce(_ news: [StorageNews]) {}

    /// No other call may follow.
    func close() throws(StorageError) { pool.close() }
}
