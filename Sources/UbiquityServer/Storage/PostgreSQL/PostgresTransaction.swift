// SPDX-License-Identifier: Apache-2.0

/// A transaction under way. Begins with its first statement.
final class PostgresTransaction {
    /// Whether an earlier attempt may have been committed. What is already as wanted then counts as
    /// done.
    let mayBeRepeated: Bool
    private let connection: PostgresConnection
    private let milliseconds: Int64
    /// The statements that go with the next flight.
    private var beginning: [PostgresStatement]

    init(
        _ connection: PostgresConnection, _ beginning: [PostgresStatement], milliseconds: Int64,
        mayBeRepeated: Bool
    ) {
        self.connection = connection
        self.beginning = beginning
        self.milliseconds = milliseconds
        self.mayBeRepeated = mayBeRepeated
    }

    /// Runs one statement in a flight.
    @discardableResult
    func run(_ sql: String, _ values: PostgresValue...) throws -> PostgresResult {
        try run([PostgresStatement(sql, values)])[0]
    }

    /// Runs the statements in one flight.
    /// - Returns: One result for each.
    @discardableResult
    func run(_ statements: [PostgresStatement]) throws -> [PostgresResult] {
        let beginning = beginning
        self.beginning = []
        let results = try connection.run(beginning + statements, milliseconds: milliseconds)
        return Array(results.dropFirst(beginning.count))
    }

    /// Runs the last statements and commits, in one flight.
    /// - Throws: ``PostgresFailure``, in doubt if the commit may have taken effect.
    @discardableResult
    func commit(_ statements: [PostgresStatement] = []) throws -> [PostgresResult] {
        if statements.isEmpty, !beginning.isEmpty { return [] }
        do {
            let results = try run(statements + [PostgresStatement("COMMIT")])
            // A transaction that had failed is answered so.
            guard results.last?.tag == "COMMIT" else {
                throw PostgresFailure(state: "40000", message: "the transaction was rolled back")
            }
            if let warning = connection.warnings.first {
                // It is committed here, and perhaps on no standby.
                throw PostgresFailure(state: warning, message: "", isInDoubt: true)
            }
            return Array(results.dropLast())
        } catch var failure as PostgresFailure {
            if connection.isBroken { failure.isInDoubt = true }
            throw failure
        }
    }

    /// Undoes everything.
    func rollBack() {
        guard beginning.isEmpty, !connection.isBroken else { return }
        _ = try? connection.run([PostgresStatement("ROLLBACK")], milliseconds: milliseconds)
        beginning = []
    }
}
