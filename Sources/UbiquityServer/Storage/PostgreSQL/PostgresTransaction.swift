// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A transaction under way. Begins with its first statement.
final class PostgresTransaction: SQLTransaction {
    let mayBeRepeated: Bool
    let connection: PostgresConnection
    private let milliseconds: Int64
    /// Statements that fail if a commit is not permitted.
    private let guards: [SQLStatement]
    /// The statements that go with the next flight.
    private var beginning: [SQLStatement]

    init(
        _ connection: PostgresConnection, _ beginning: [SQLStatement],
        guards: [SQLStatement] = [], milliseconds: Int64, mayBeRepeated: Bool = false
    ) {
        self.connection = connection
        self.beginning = beginning
        self.guards = guards
        self.milliseconds = milliseconds
        self.mayBeRepeated = mayBeRepeated
    }

    /// Runs the body and commits, or undoes everything if one of them fails.
    func committing<T>(_ body: (PostgresTransaction) throws -> T) throws -> T {
        do {
            let result = try body(self)
            try commit()
            return result
        } catch {
            rollBack()
            throw error
        }
    }

    /// Runs the statements in one flight.
    /// - Returns: One result for each.
    @discardableResult
    func run(_ statements: [SQLStatement]) throws -> [PostgresResult] {
        let beginning = beginning
        self.beginning = []
        let results = try connection.run(beginning + statements, milliseconds: milliseconds)
        return Array(results.dropFirst(beginning.count))
    }

    /// Runs the last statements and commits, in one flight.
    /// - Throws: ``PostgresFailure``, in doubt if the commit may have taken effect.
    func commit(_ statements: [SQLStatement] = []) throws {
        if statements.isEmpty, !beginning.isEmpty { return }
        do {
            let results = try run(statements + guards + [SQLStatement("COMMIT")])
            // A transaction that had failed is answered so.
            guard results.last?.tag == "COMMIT" else {
                throw PostgresFailure(state: "40000", message: "the transaction was rolled back")
            }
            if let warning = connection.warnings.first {
                // It is committed here, and perhaps on no standby.
                throw PostgresFailure(state: warning, message: "", isInDoubt: true)
            }
        } catch let failure as PostgresFailure where failure.state == "22P02" && !guards.isEmpty {
            throw StorageError.failed(
                "the database has no synchronous standby, which this server requires")
        } catch var failure as PostgresFailure {
            // Also if the server ended the connection with an error: that may be of the commit.
            if connection.isBroken { failure.isInDoubt = true }
            throw failure
        }
    }

    /// Fails if there is no synchronous standby. The names of standbys may be hidden from the user.
    static let standbyGuard = SQLStatement(
        """
        SELECT CASE WHEN current_setting('synchronous_standby_names') = '' OR NOT EXISTS (
            SELECT FROM pg_stat_get_wal_senders() w
            WHERE w.sync_state IS NULL OR w.sync_state IN ('sync', 'quorum'))
            THEN 'none' ELSE '1' END::int
        """)

    static func forgettingProgress(of device: DeviceReference) -> SQLStatement {
        SQLStatement(
            "DELETE FROM ubiquity.passed WHERE account = $1 AND device = $2", device.values)
    }

    static func listingErased(_ account: AccountID) -> [SQLStatement] {
        [
            SQLStatement(
                """
                INSERT INTO ubiquity.erased (account, store)
                SELECT account, number FROM ubiquity.store WHERE account = $1
                """, .text(account.string))
        ]
    }

    /// Undoes everything.
    func rollBack() {
        guard beginning.isEmpty, !connection.isBroken else { return }
        _ = try? connection.run([SQLStatement("ROLLBACK")], milliseconds: milliseconds)
        beginning = []
    }
}
