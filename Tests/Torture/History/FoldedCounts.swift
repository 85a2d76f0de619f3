// SPDX-License-Identifier: Apache-2.0

import Foundation
import GRDB
import UbiquityCore
import UbiquitySimulation

/// What the server has folded of counts, which it tells nobody: read beside it.
enum FoldedCounts {
    static func read(
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
