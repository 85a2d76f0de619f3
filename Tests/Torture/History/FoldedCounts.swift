// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import ProcessHarness
import UbiquityCore
import UbiquitySimulation

/// The counts that the server has folded. No response contains them, so they are read from its
/// database.
enum FoldedCounts {
    static func read(_ run: TortureRun) throws -> [StoreReference: [FoldedIncrement]] {
        guard let database = run.database else {
            return try read(run.nodes[0].server.data, of: run.listeners)
        }
        return try run.listeners.reduce(into: [:]) { folded, listener in
            folded[listener.store] = try read(database, of: listener.account.account)
        }
    }

    private static func read(
        _ database: DatabasePair, of account: String
    ) throws -> [FoldedIncrement] {
        let rows = try database.query(
            """
            SELECT encode(key, 'hex'), encode(run, 'hex'), \(numbers)
            FROM ubiquity.folded WHERE account = '\(account)'
            """)
        return try rows.split(separator: "\n").map { row in
            let columns = row.split(separator: "|").map(String.init)
            return try increment(
                text(hex: columns[0]), text(hex: columns[1]),
                columns.dropFirst(2).compactMap { Int64($0) })
        }
    }

    private static func text(hex: String) -> String {
        let digits = Array(hex)
        let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...$0 + 1]), radix: 16)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func read(
        _ folder: String, of listeners: [ServerListener]
    ) throws -> [StoreReference: [FoldedIncrement]] {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(10)
        let queue = try DatabaseQueue(
            path: folder + "/ubiquity.sqlite", configuration: configuration)
        defer { try? queue.close() }
        return try queue.read { db in
            var folded: [StoreReference: [FoldedIncrement]] = [:]
            for listener in listeners {
                let rows = try Row.fetchAll(
                    db,
                    sql: """
                        SELECT key, run, \(numbers)
                        FROM folded JOIN store ON store.id = folded.store WHERE account = ?
                        """, arguments: [listener.account.account])
                folded[listener.store] = try rows.map { row in
                    try increment(
                        String(decoding: row[0] as Data, as: UTF8.self),
                        String(decoding: row[1] as Data, as: UTF8.self),
                        (2..<row.count).map { row[$0] })
                }
            }
            return folded
        }
    }

    /// The columns with numbers, the same in both databases: see their schemas.
    private static let numbers = "since, times, amount, total, reals, mark, removed, time"

    private static func increment(
        _ key: String, _ run: String, _ numbers: [Int64]
    ) throws -> FoldedIncrement {
        func number(_ bits: Int64, isReal: Bool) -> Number? {
            Number(
                isReal ? .real(Double(bitPattern: UInt64(bitPattern: bits))) : .integer(bits))
        }
        guard numbers.count == 8, [0, 1].contains(numbers[6]), let part = PartID(run),
            let amount = number(numbers[2], isReal: numbers[4] & 1 != 0),
            let total = number(numbers[3], isReal: numbers[4] & 2 != 0)
        else { throw Trouble("a folded count of \(key) cannot be read: \(run) \(numbers)") }
        return FoldedIncrement(
            run: try Key(key).part(part), after: numbers[0], times: numbers[1],
            amount: amount, total: total, mark: FoldMark(rawValue: numbers[5]),
            isRemoved: numbers[6] == 1,
            timestamp: HybridTimestamp(rawValue: UInt64(bitPattern: numbers[7])))
    }
}
