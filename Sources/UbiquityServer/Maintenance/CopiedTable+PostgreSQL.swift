// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension CopiedTable {
    private var names: String { columns.map(\.name).joined(separator: ", ") }
    private static let written = "octet_length(head) > 0"
    private var key: String { columns.prefix(keyCount).map(\.name).joined(separator: ", ") }

    func count(_ transaction: PostgresTransaction) throws -> Int {
        let condition = skipsUnwritten ? " WHERE \(Self.written)" : ""
        let result = try transaction.run("SELECT count(*) FROM ubiquity.\(name)\(condition)")
        guard let row = result.rows.first else { throw StorageError.unreadable }
        return try row.count(0)
    }

    /// Reads all rows in the order of the key, some at a time.
    /// - Throws: ``StorageError/unreadable`` for a column of another type.
    func read(_ transaction: PostgresTransaction, _ body: (CopiedRow) throws -> Void) throws {
        var last: [SQLValue] = []
        while true {
            let page = try transaction.run([SQLStatement(page(after: !last.isEmpty), last)])[0]
            for row in page.rows {
                let row = try self.row(row)
                try body(row)
                last = Array(row.prefix(keyCount))
            }
            guard !page.rows.isEmpty else { return }
            last = zip(columns, last).map { column, value in Self.parameter(value, column.kind) }
        }
    }

    /// A page ends with the row whose large value exceeds ``CopyBatch/bytesMax``.
    private func page(after isAfter: Bool) -> String {
        let parameters = (1...keyCount).map { "$\($0)" }.joined(separator: ", ")
        let conditions =
            (isAfter ? ["(\(key)) > (\(parameters))"] : []) + (skipsUnwritten ? [Self.written] : [])
        let condition = conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ")
        let rows = """
            SELECT \(names) FROM ubiquity.\(name) \(condition)
            ORDER BY \(key) LIMIT \(CopyBatch.rowsMax)
            """
        guard let large else { return rows }
        return """
            SELECT \(names) FROM (
                SELECT *, sum(octet_length(\(large))) OVER (
                    ORDER BY \(key) ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                FROM (\(rows)) AS page) AS page
            WHERE coalesce(before, 0) < \(CopyBatch.bytesMax) ORDER BY \(key)
            """
    }

    private func row(_ row: PostgresRow) throws(StorageError) -> CopiedRow {
        var result: CopiedRow = []
        result.reserveCapacity(columns.count)
        for (index, column) in columns.enumerated() {
            guard !row.isNull(index) else {
                result.append(.null)
                continue
            }
            switch column.kind {
            case .integer: result.append(.integer(try row.integer(index)))
            case .text: result.append(.bytes(Data(try row.text(index).utf8)))
            case .bytes: result.append(.bytes(try row.bytes(index)))
            }
        }
        return result
    }

    func write(_ rows: [CopiedRow], _ transaction: PostgresTransaction) throws {
        let arrays = columns.indices.map { "$\($0 + 1)::\(Self.type(columns[$0].kind))[]" }
        let values = columns.indices.map { index in
            Self.array(rows.map { $0[index] }, columns[index].kind)
        }
        try transaction.run([
            SQLStatement(
                """
                INSERT INTO ubiquity.\(name) (\(names))
                SELECT * FROM unnest(\(arrays.joined(separator: ", ")))
                """, values)
        ])
    }

    private static func type(_ kind: Kind) -> String {
        switch kind {
        case .integer: "bigint"
        case .text: "text"
        case .bytes: "bytea"
        }
    }

    private static func array(_ values: [SQLValue], _ kind: Kind) -> SQLValue {
        switch kind {
        case .integer:
            .integers(
                values.map { value in
                    if case .integer(let number) = value { number } else { nil }
                })
        case .text: .texts(values.map(text))
        case .bytes:
            .blobs(values.map { value in if case .bytes(let bytes) = value { bytes } else { nil } })
        }
    }

    private static func parameter(_ value: SQLValue, _ kind: Kind) -> SQLValue {
        kind == .text ? .optional(text(value)) : value
    }

    private static func text(_ value: SQLValue) -> String? {
        if case .bytes(let bytes) = value { String(decoding: bytes, as: UTF8.self) } else { nil }
    }
}

/// Rows on their way into PostgreSQL, some at a time.
struct CopyBatch {
    static let rowsMax = 2_000
    static let bytesMax = 4 << 20
    private(set) var rows: [CopiedRow] = []
    private var bytes = 0

    var isFull: Bool { rows.count >= Self.rowsMax || bytes >= Self.bytesMax }

    mutating func add(_ row: CopiedRow) {
        rows.append(row)
        for case .bytes(let data) in row { bytes += data.count }
    }

    mutating func take() -> [CopiedRow] {
        defer { self = CopyBatch() }
        return rows
    }
}
