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
            folded[listener.store] = try read(database, of: listener.account)
        }
    }

    /// Numbers are texts with their bits, see the database's schema.
    private static func read(
        _ database: DatabasePair, of account: String
    ) throws -> [FoldedIncrement] {
        let rows = try database.query(
            """
            SELECT encode(key, 'hex'), encode(run, 'hex'), since, times, amount, total, reals, mark,
                removed, time
            FROM ubiquity.folded WHERE account = '\(account)'
            """)
        return try rows.split(separator: "\n").map { row in
            let columns = row.split(separator: "|").map(String.init)
            let numbers = columns.map { Int64($0) ?? 0 }
            let (key, run) = (text(hex: columns[0]), text(hex: columns[1]))
            func number(_ bits: Int64, isReal: Bool) -> Number? {
                isReal
                    ? Number(.real(Double(bitPattern: UInt64(bitPattern: bits))))
                    : Number(.integer(bits))
            }
            guard let part = PartID(run),
                let amount = number(numbers[4], isReal: numbers[6] & 1 != 0),
                let total = number(numbers[5], isReal: numbers[6] & 2 != 0)
            else { throw Trouble("a folded count cannot be read: \(row)") }
            return FoldedIncrement(
                run: try Key(key).part(part), after: numbers[2], times: numbers[3],
                amount: amount, total: total, mark: FoldMark(rawValue: numbers[7]),
                isRemoved: columns[8] == "t",
                timestamp: HybridTimestamp(rawValue: UInt64(bitPattern: numbers[9])))
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
                        SELECT key, run, since, times, amount, total, mark, removed, time
                        FROM folded JOIN store ON store.id = folded.store WHERE account = ?
                        """, arguments: [listener.account])
                folded[listener.store] = try rows.compactMap(increment)
            }
            return folded
        }
    }

    private static func increment(_ row: Row) throws -> FoldedIncrement? {
        let key = try Key(String(decoding: row[0] as Data, as: UTF8.self))
        guard let part = PartID(String(decoding: row[1] as Data, as: UTF8.self)),
            let amount = number(row[4]), let total = number(row[5])
        else { return nil }
        return FoldedIncrement(
            run: key.part(part), after: row[2], times: row[3], amount: amount, total: total,
            mark: FoldMark(rawValue: row[6]), isRemoved: row[7],
            timestamp: HybridTimestamp(rawValue: UInt64(bitPattern: row[8] as Int64)))
    }

    private static func number(_ value: DatabaseValue) -> Number? {
        switch value.storage {
        case .int64(let value): Number(.integer(value))
        case .double(let value): Number(.real(value))
        default: nil
        }
    }
}
