// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Ubiquity
internal import UbiquityCore

extension FuzzEntry {
    /// The whole of a store's file.
    static var storeFile: FuzzEntry {
        FuzzEntry("store-file", stack: .system, bytesMax: 16_384) {
            try Samples.storeFiles()
        } check: { bytes in
            let folder = try ScratchFolder()
            try StoreTrial.check(try folder.write(bytes, to: "store.sqlite"))
        }
    }

    /// Rows of any content in a file that is whole.
    static var storeRows: FuzzEntry {
        FuzzEntry("store-rows", stack: .system) {
            Samples.rows()
        } check: { bytes in
            let folder = try ScratchFolder()
            let path = try folder.write(try StoreTrial.sample.get(), to: "store.sqlite")
            try insert(RowReader.rows(in: bytes), path)
            try StoreTrial.check(path)
        }
    }

    /// Inserts the rows, except those that SQLite refuses.
    private static func insert(_ rows: [RowReader.Row], _ path: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA synchronous = OFF")
            for row in rows {
                let statement = try db.cachedStatement(sql: row.table.insertion)
                try? statement.execute(arguments: StatementArguments(row.values))
            }
        }
        try queue.close()
    }
}

extension RowReader.Table {
    fileprivate var insertion: String {
        switch self {
        case .entry:
            """
            INSERT OR REPLACE INTO entry (key, version, confirmed_time, confirmed_device,
                confirmed_value, pending_time, pending_device, pending_value,
                pending_transaction, provisional_wall, provisional_uptime, provisional_boot,
                provisional_seen, confirmed_digest, pending_digest, had_time, had_device,
                pending_unkept, unkept)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        case .refused:
            """
            INSERT INTO refused (key, time, device, value, code, detail, digest)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """
        case .meta: "INSERT OR REPLACE INTO meta (id, version, data) VALUES (1, ?, ?)"
        }
    }
}
