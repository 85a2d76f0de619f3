// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A parameter of a statement.
enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    case text(String)
    case bytes(Data)
    /// The arrays are PostgreSQL's alone.
    case integers([Int64?])
    case texts([String?])
    case blobs([Data?])

    static func optional(_ number: Int64?) -> SQLValue { number.map { .integer($0) } ?? .null }

    static func optional(_ text: String?) -> SQLValue { text.map { .text($0) } ?? .null }
}

/// A statement and its parameters, which the text names `$1` and so on.
struct SQLStatement: Hashable, Sendable {
    var sql: String
    var values: [SQLValue]

    init(_ sql: String, _ values: SQLValue...) { self.init(sql, values) }

    init(_ sql: String, _ values: [SQLValue]) {
        self.sql = sql
        self.values = values
    }
}
