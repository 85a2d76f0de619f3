// SPDX-License-Identifier: Apache-2.0

import GRDB

/// Reads, and goes on seeing what there was when it began.
final class ReadingTransaction {
    private let queue: DatabaseQueue

    init(_ path: String) throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        queue = try DatabaseQueue(path: path, configuration: configuration)
        try queue.inDatabase { db in
            try db.execute(sql: "BEGIN")
            _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM record")
        }
    }

    func end() throws { try queue.inDatabase { try $0.execute(sql: "COMMIT") } }
}
