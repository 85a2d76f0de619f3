// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The result of reading everything in a PostgreSQL database, as its servers would. They may be
/// running meanwhile: it reads one moment.
package struct DatabaseCheck: Sendable {
    package let tables: [TableDigest]
    /// The number of rows that a server could not use.
    package let unreadable: Int
    /// Whether the number of accounts is what the directory counts.
    package let isCountRight: Bool
    package let format: Int

    /// - Throws: ``ServerStartError``, ``StorageError``.
    package init(_ settings: PostgresSettings, progress: (_ rows: Int) -> Void) throws {
        let storage = try PostgresServerStorage.openForAdministration(settings)
        format = Int(PostgresSchema.version)
        let result = try storage.reading(milliseconds: 600_000) { transaction in
            var tables: [TableDigest] = []
            var unreadable = 0
            var rows = 0
            for table in CopiedTable.all {
                var digest = TableDigest(of: table)
                try table.read(transaction) { row in
                    digest.add(row)
                    if !table.isReadable(row) { unreadable += 1 }
                    rows += 1
                    if rows.isMultiple(of: 1_000) { progress(rows) }
                }
                tables.append(digest)
            }
            let counted = try transaction.run("SELECT accounts FROM ubiquity.directory").rows.first
            return (tables, unreadable, try counted?.count(0))
        }
        (tables, unreadable) = (result.0, result.1)
        isCountRight = tables.rows(in: "account") == result.2
        try storage.close()
    }
}

extension CopiedTable {
    /// Whether a server can use the row. The database has checked the types already.
    fileprivate func isReadable(_ row: CopiedRow) -> Bool {
        func bytes(_ name: String) -> Data? {
            guard let index = columns.firstIndex(where: { $0.name == name }),
                case .bytes(let bytes) = row[index]
            else { return nil }
            return bytes
        }
        func integer(_ name: String) -> Int64 {
            guard let index = columns.firstIndex(where: { $0.name == name }),
                case .integer(let number) = row[index]
            else { return 0 }
            return number
        }
        func text(_ name: String) -> String {
            String(decoding: bytes(name) ?? Data(), as: UTF8.self)
        }
        let owner = bytes(name == "account" ? "id" : "account")
        if let owner, AccountID(String(decoding: owner, as: UTF8.self)) == nil { return false }
        switch name {
        case "account":
            return AccountName(text("name")) != nil
                && (try? AccountLimits(stored: text("limits"))) != nil
        case "device":
            return bytes("stores").map { stores in
                (try? StoreList.set(String(decoding: stores, as: UTF8.self))) != nil
            } ?? true
        case "store":
            guard (try? StoreIdentifier(text("identifier"))) != nil, let head = bytes("head") else {
                return false
            }
            let newest = HybridTimestamp(rawValue: UInt64(bitPattern: integer("newest")))
            let state = try? StoreHead.state(
                head, newest: newest, revision: integer("revision"))
            return state?.recent.isEmpty ?? false
        case "record", "version":
            let stamp = Stamp(
                HybridTimestamp(rawValue: UInt64(bitPattern: integer("time"))),
                DeviceID(rawValue: UInt64(bitPattern: integer("device"))),
                digest: UInt64(bitPattern: integer("digest")))
            let record = StoredRecord(
                key: bytes("key") ?? Data(), stamp: stamp, value: bytes("value"))
            let isKnown = name == "record" || StoredFate(rawValue: integer("outcome")) != nil
            return isKnown && (try? record.record()) != nil
        default: return true
        }
    }
}
