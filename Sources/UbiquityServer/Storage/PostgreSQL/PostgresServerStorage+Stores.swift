// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    func stores(of account: AccountID) throws(StorageError) -> [StoreSummary] {
        try reading { transaction in
            let rows = try transaction.run(
                """
                SELECT identifier, name FROM ubiquity.store LEFT JOIN ubiquity.app USING (identifier)
                WHERE account = $1 ORDER BY identifier
                """,
                .text(account.string)
            ).rows
            let references = try rows.map {
                StoreReference(account: account, identifier: try $0.store(0))
            }
            let stores = try PostgresStore.read(
                references,
                from: transaction.run(PostgresStore.reading(references, isLocking: false))[...])
            return try zip(references, rows).compactMap { reference, row in
                guard let store = try stores[reference]?.get() else { return nil }
                return StoreSummary(
                    identifier: reference.identifier, usage: store.state.usage,
                    position: store.state.lineage.position, appName: try row.textIfAny(1),
                    contentGeneration: store.state.contentGeneration)
            }
        }
    }

    func positions(
        of stores: [StoreReference]
    ) throws(StorageError) -> [StoreReference: Position] {
        guard !stores.isEmpty else { return [:] }
        let floor = try checkHistory()
        let statements = PostgresStore.reading(stores, isLocking: false) + [momentStatement]
        return try reading(statements) { results, connection in
            let found = try PostgresStore.read(stores, from: results[0...1])
                .compactMapValues { try? $0.get() }
            try note(
                PostgresMoment(results[2]), found.values.map(\.storedPosition), since: floor,
                on: connection)
            return found.mapValues(\.state.lineage.position)
        }
    }

    /// Nothing is remembered.
    func unchanged(
        _ store: StoreReference, since position: Position, sealedWith generation: UInt32?
    ) -> StoreRead? { nil }

    /// Reads the head and the records of one moment. The position tells which records are wanted,
    /// even before it is known whether it is one of this store.
    func read(
        _ store: StoreReference, since: Position?, sealedWith generation: UInt32?
    ) throws(StorageError) -> StoreRead {
        let statements =
            PostgresStore.reading([store], isLocking: false) + [Self.records(of: store, since)]
        return try reading(statements) { results, connection in
            let found = try PostgresStore.read([store], from: results[0...1])[store]?.get()
            let state = found?.state ?? StoreState()
            if let generation, !state.isReadable(with: generation) { return .unsealed }
            switch since.map(state.lineage.resumption) {
            case .otherHistory:
                if let since { try refuseIfReplaced(since, of: store, on: connection) }
                return .otherHistory
            case .compacted: return .compacted
            case nil, .after: break
            }
            // None if there is no store.
            let records = try results[2].rows.map { row in
                StoredRecord(
                    key: try row.bytes(0), stamp: try row.stamp(1), value: try row.bytesIfAny(4))
            }
            return .changes(
                records, position: state.lineage.position, isWhole: since == nil,
                horizon: state.horizon)
        }
    }

    private static func records(of store: StoreReference, _ since: Position?) -> SQLStatement {
        let columns =
            "SELECT r.key, r.time, r.device, r.digest, r.value FROM ubiquity.store s "
            + "JOIN ubiquity.record r ON r.account = s.account AND r.store = s.number "
            + "WHERE s.account = $1 AND s.identifier = $2 AND"
        let arguments: [SQLValue] = [
            .text(store.account.string), .text(store.identifier.string),
        ]
        guard let since else {
            return SQLStatement("\(columns) r.value IS NOT NULL", arguments)
        }
        return SQLStatement(
            "\(columns) r.revision > $3", arguments + [.integer(since.revision)])
    }
}

extension StoreReference: Comparable {
    /// By the bytes of the account's ID and the store's identifier, as the database does.
    static func < (a: Self, b: Self) -> Bool {
        guard a.account == b.account else { return a.account < b.account }
        return a.identifier.string.utf8.lexicographicallyPrecedes(b.identifier.string.utf8)
    }
}
