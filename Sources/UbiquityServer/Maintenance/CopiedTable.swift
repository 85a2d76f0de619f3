// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation
internal import GRDB
internal import UbiquityCore

/// A row of a table that both backends have: its columns in the order of ``CopiedTable/columns``.
/// Texts are bytes.
typealias CopiedRow = [SQLValue]

/// A table as `DatabaseCopy` reads and writes it in both backends.
struct CopiedTable: Sendable {
    enum Kind: Hashable {
        case integer
        case bytes
        case text
    }

    struct Column: Sendable {
        var name: String
        var kind: Kind
        /// The expression in SQLite that gives it.
        var reading: String
    }

    /// A statement that stores a part of a row in SQLite.
    struct Writing: Sendable {
        var sql: String
        var columns: [Int]
    }

    let name: String
    let columns: [Column]
    /// The number of columns that are PostgreSQL's key, and are never null. These are the first.
    let keyCount: Int
    /// The column that may be large.
    let large: String?
    /// Whether PostgreSQL may have rows of stores that were never written to.
    var skipsUnwritten: Bool { name == "store" }
    /// The tables in SQLite that are read.
    private let source: String
    let writings: [Writing]

    fileprivate init(
        _ name: String, key keyCount: Int, _ columns: [(String, Kind)],
        reading: [String: String] = [:], from source: String? = nil, writings: [Writing]? = nil,
        skipping skipped: String? = nil, large: String? = nil
    ) {
        self.name = name
        self.keyCount = keyCount
        self.large = large
        self.source = source ?? name
        self.columns = columns.map { name, kind in
            let expression = reading[name] ?? name
            return Column(
                name: name, kind: kind,
                reading: kind == .text ? "CAST(\(expression) AS BLOB)" : expression)
        }
        let kept = columns.indices.filter { columns[$0].0 != skipped }
        self.writings =
            writings ?? [
                Writing(
                    sql: """
                        INSERT INTO \(name) (\(kept.map { columns[$0].0 }.joined(separator: ", ")))
                        VALUES (\(kept.map { Self.bound(columns[$0].1) }.joined(separator: ", ")))
                        """, columns: kept)
            ]
    }

    fileprivate static func bound(_ kind: Kind) -> String {
        kind == .text ? "CAST(? AS TEXT)" : "?"
    }

    var reading: String {
        "SELECT \(columns.map(\.reading).joined(separator: ", ")) FROM \(source)"
    }
}

extension CopiedTable {
    /// The tables that a server fills when it starts, even if nobody uses it.
    static let ofServers: Set = ["secret", "known_limit", "code"]

    /// Every table with data. What was erased is removed before, and has no rows here.
    static let all: [CopiedTable] = [
        CopiedTable("secret", key: 1, [("name", .text), ("hash", .bytes)]),
        CopiedTable("known_limit", key: 1, [("name", .text), ("value", .text)]),
        CopiedTable(
            "app", key: 1, [("identifier", .text), ("registered", .integer), ("name", .text)]),
        CopiedTable(
            "audit", key: 1,
            [
                ("number", .integer), ("time", .integer), ("deed", .text), ("account", .text),
                ("device", .integer), ("actor", .text), ("actor_device", .integer),
                ("last", .integer), ("count", .integer), ("detail", .text),
            ]),
        CopiedTable(
            "account", key: 1,
            [
                ("id", .text), ("name", .text), ("created", .integer), ("limits", .text),
                ("sealing", .bytes), ("reset_at", .integer),
            ]),
        CopiedTable(
            "identity", key: 2, [("issuer", .bytes), ("subject", .bytes), ("account", .text)]),
        CopiedTable(
            "code", key: 1,
            [
                ("hash", .bytes), ("account", .text), ("expires", .integer), ("stores", .text),
                ("credential_milliseconds", .integer), ("credential_latest", .integer),
                ("maker", .integer), ("used", .integer),
            ]),
        CopiedTable(
            "sign_in_request", key: 1,
            [
                ("hash", .bytes), ("user_code", .bytes), ("title", .bytes), ("address", .text),
                ("expires", .integer), ("stores", .text), ("credential_milliseconds", .integer),
                ("credential_latest", .integer), ("account", .text), ("maker", .integer),
                ("denied", .integer), ("used", .integer),
            ]),
        CopiedTable(
            "handover", key: 2,
            [
                ("account", .text), ("name", .bytes), ("expires", .integer), ("box", .bytes),
                ("confined", .integer),
            ]),
        CopiedTable(
            "device", key: 2,
            [
                ("account", .text), ("id", .integer), ("title", .bytes), ("credential", .bytes),
                ("created", .integer), ("seen", .integer), ("stores", .text),
                ("expires", .integer), ("clock_ahead", .integer), ("clock_measured", .integer),
                ("version", .text), ("adder", .integer),
            ]),
        // SQLite has the state as a record with an empty key.
        CopiedTable(
            "store", key: 2,
            [
                ("account", .text), ("identifier", .text), ("number", .integer),
                ("revision", .integer), ("newest", .integer), ("head", .bytes),
            ], reading: ["number": "id", "newest": "time", "head": "value"],
            from: "store LEFT JOIN record ON record.store = store.id AND record.key = x''",
            writings: [
                Writing(
                    sql: """
                        INSERT INTO store (account, identifier, id)
                        VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?)
                        """, columns: [0, 1, 2]),
                Writing(
                    sql: """
                        INSERT INTO record
                            (store, revision, time, value, key, device, committed, digest)
                        VALUES (?, ?, ?, ?, x'', 0, 0, 0)
                        """, columns: [2, 3, 4, 5]),
            ]),
        ofStores(
            "span", key: 3, [("first_revision", .integer), ("epoch", .integer)]),
        ofStores("passed", key: 3, [("device", .integer), ("revision", .integer)]),
        ofStores(
            "folded", key: 5,
            [
                ("key", .bytes), ("run", .bytes), ("times", .integer), ("since", .integer),
                ("amount", .integer), ("total", .integer), ("reals", .integer),
                ("mark", .integer), ("removed", .integer), ("time", .integer),
                ("committed", .integer),
            ]),
        ofStores(
            "record", key: 3,
            [
                ("key", .bytes), ("time", .integer), ("device", .integer),
                ("revision", .integer), ("committed", .integer), ("value", .bytes),
                ("digest", .integer), ("came", .integer),
            ], condition: " WHERE key IS NOT x''", large: "value"),
        ofStores(
            "version", key: 7,
            [
                ("key", .bytes), ("ended", .integer), ("time", .integer), ("device", .integer),
                ("digest", .integer), ("value", .bytes), ("revision", .integer),
                ("came", .integer), ("ended_ms", .integer), ("by_time", .integer),
                ("by_device", .integer), ("outcome", .integer),
            ], large: "value"),
    ]

    /// A table of stores' content. SQLite has only the stores' numbers in it.
    private static func ofStores(
        _ name: String, key: Int, _ columns: [(String, Kind)], condition: String = "",
        large: String? = nil
    ) -> CopiedTable {
        CopiedTable(
            name, key: key, [("account", .text), ("store", .integer)] + columns,
            from: "\(name) JOIN store ON store.id = \(name).store\(condition)",
            skipping: "account", large: large)
    }
}

/// A table's name, the number of its rows, and a digest of their content, in whatever order they are
/// read: the sum of the rows' SHA-256 hashes.
package struct TableDigest: Hashable, Sendable {
    package let name: String
    package private(set) var rows = 0
    private var sums: [UInt64] = [0, 0, 0, 0]

    init(of table: CopiedTable) { name = table.name }

    mutating func add(_ row: CopiedRow) {
        var hasher = SHA256()
        for value in row {
            // The kind and the length begin each value, so that no two rows are the same bytes.
            switch value {
            case .integer(let number): Self.update(&hasher, 1, UInt64(bitPattern: number))
            case .bytes(let bytes):
                Self.update(&hasher, 4, UInt64(bytes.count))
                hasher.update(data: bytes)
            default: Self.update(&hasher, 0, 0)
            }
        }
        hasher.finalize().withUnsafeBytes { hash in
            for index in sums.indices {
                let part = hash.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)
                sums[index] &+= UInt64(bigEndian: part)
            }
        }
        rows += 1
    }

    private static func update(_ hasher: inout SHA256, _ kind: UInt8, _ number: UInt64) {
        withUnsafeBytes(of: (number.bigEndian, kind)) { bytes in
            hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: bytes[..<9]))
        }
    }

    /// In hexadecimal.
    package var text: String { sums.map(\.hexadecimal).joined() }
}

extension [TableDigest] {
    package func rows(in table: String) -> Int { first { $0.name == table }?.rows ?? 0 }
}
