// SPDX-License-Identifier: Apache-2.0

/// The failure of a connection or a statement.
struct PostgresFailure: Error, Hashable, Sendable {
    /// The SQLSTATE: five letters and digits, the first two are the class.
    var state: String
    /// The server's or libpq's sentence. May name things of the schema, but no data and no secrets.
    var message: String
    /// Whether the transaction may have been committed.
    var isInDoubt = false

    /// The connection was lost, or could not be made.
    static func lost(_ message: String) -> PostgresFailure {
        PostgresFailure(state: "08006", message: message)
    }

    /// The server did not answer in time.
    static let silent = lost("the server did not answer in time")

    /// The connection leads to a primary that was replaced and does not know it. Another one may find
    /// its successor.
    static let replaced = PostgresFailure(
        state: "25006", message: "this server was replaced as the primary")

    /// Whether the connection must not be used again.
    var breaksConnection: Bool {
        switch state.prefix(2) {
        case "08", "57": state != "57014"
        // The server became a standby or ended a slow transaction; an old plan does not fit a
        // migrated table; a prepared statement is unknown.
        case "25", "0A", "26": ["25006", "25P03", "0A000", "26000"].contains(state)
        default: false
        }
    }

    /// Whether the same transaction may succeed soon: after a lost connection, a change of the
    /// primary, a serialisation failure, a deadlock, a wait for a lock, or too many connections.
    var isTransient: Bool {
        breaksConnection || isInDoubt
            || ["40001", "40P01", "40003", "55P03", "53300"].contains(state)
    }

    /// Whether the cause may be one of the transaction's stores, such as a row that another session
    /// has locked for long, so that the transaction may succeed without that store.
    var mayBeOfOneStore: Bool {
        ["55P03", "57014", "40P01"].contains(state)
            || ["22", "23", "54"].contains(String(state.prefix(2)))
    }

    var isOfFullDisk: Bool { state == "53100" }

    /// For the operator. The sentences of other classes may quote data.
    private var isTellable: Bool {
        ["08", "25", "28", "3D", "42", "53", "57", "58", "XX"].contains(String(state.prefix(2)))
    }

    var reason: String {
        let doubt = isInDoubt ? "whether it was committed is unknown: " : ""
        return doubt + (isTellable ? "PostgreSQL \(state), \(message)" : "PostgreSQL \(state)")
    }
}

extension StorageError {
    /// Translates the failure of a transaction.
    init(postgres error: any Error) {
        switch error {
        case let error as StorageError: self = error
        case let error as PostgresFailure where error.isOfFullDisk: self = .full
        case let error as PostgresFailure: self = .failed(error.reason)
        default: self = .failed("\(type(of: error))")
        }
    }
}
