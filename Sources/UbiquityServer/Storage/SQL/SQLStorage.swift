// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A storage in a database. What it does for accounts, devices, apps and the audit log is here, once
/// for each database: the same statements on the same tables, in PostgreSQL's words.
///
/// Several nodes may be at work. So what a transaction decides by is locked before it is read: the
/// directory (``Directory``), then accounts, then stores.
protocol SQLStorage: ServerStorage {
    associatedtype DatabaseTransaction: SQLTransaction

    /// Reads one moment by a statement.
    func reading<T>(
        _ statement: SQLStatement, _ body: (DatabaseTransaction.StatementResult) throws -> T
    ) throws(StorageError) -> T

    /// Runs the body in one transaction, which an error rolls back. It may be run again, also if it
    /// may have been committed.
    /// - Parameter news: Gives what the others are told once it is committed.
    func writing<T>(
        _ body: (DatabaseTransaction) throws -> T, news: (T) -> [StorageNews]
    ) throws(StorageError) -> T
}

extension SQLStorage {
    func writing<T>(_ body: (DatabaseTransaction) throws -> T) throws(StorageError) -> T {
        try writing(body) { _ in [] }
    }

    /// Runs the body, as ``writing(_:news:)`` does.
    /// - Parameters:
    ///   - news: What the others are told if it was done.
    ///   - body: Returns whether there was something to do.
    /// - Returns: Whether it was done, perhaps by an earlier attempt whose commit was in doubt.
    func doing(
        _ news: StorageNews, _ body: (DatabaseTransaction) throws -> Bool
    ) throws(StorageError) -> Bool {
        var isDone = false
        try writing { transaction in
            isDone = try body(transaction) || isDone && transaction.mayBeRepeated
        } news: { _ in
            isDone ? [news] : []
        }
        return isDone
    }
}

/// A transaction under way.
protocol SQLTransaction {
    associatedtype StatementResult: SQLResult

    /// Whether an earlier attempt may have been committed. What is already as wanted then counts as
    /// done.
    var mayBeRepeated: Bool { get }

    /// Runs statements, one after the other.
    /// - Returns: One result for each.
    @discardableResult
    func run(_ statements: [SQLStatement]) throws -> [StatementResult]

    /// Removes what is known of a device's progress in the stores.
    static func forgettingProgress(of device: DeviceReference) -> SQLStatement

    /// Puts an account's stores on the list of what is to be removed.
    static func listingErased(_ account: AccountID) -> [SQLStatement]
}

extension SQLTransaction {
    /// Runs one statement.
    @discardableResult
    func run(_ sql: String, _ values: SQLValue...) throws -> StatementResult {
        try run([SQLStatement(sql, values)])[0]
    }
}

/// The result of a statement.
protocol SQLResult {
    associatedtype Row: ColumnReading
    var rows: [Row] { get }
    /// The number of rows that it inserted, changed or removed.
    var changes: Int { get }
}

/// The row that every node locks to add, rename or erase an account, or to register or remove an
/// app: names and numbers of the whole server are decided by one node at a time. It is locked before
/// the accounts' rows, and these before the stores'. It counts the accounts, because counting rows
/// takes a tenth of a second with a million of them.
enum Directory {
    /// Gives the number of accounts.
    static let locking = SQLStatement("SELECT accounts FROM ubiquity.directory FOR UPDATE")

    static func adding(_ accounts: Int64) -> SQLStatement {
        SQLStatement(
            "UPDATE ubiquity.directory SET accounts = accounts + $1", .integer(accounts))
    }
}
