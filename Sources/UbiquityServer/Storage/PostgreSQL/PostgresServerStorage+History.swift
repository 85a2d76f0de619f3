// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

extension PostgresServerStorage {
    func versions(
        of store: StoreReference, key: Key?, currentOnly: Bool,
        _ choose: (StoreState, [HistoryRule.Line]) -> [Int]
    ) throws(StorageError) -> [StoredVersion] {
        try reading { transaction in
            let statements = PostgresVersions.lines(of: store, key: key)
            let results = try transaction.run(
                PostgresStore.reading([store], isLocking: false)
                    + (currentOnly ? statements.suffix(1) : statements[...]))
            guard let found = try PostgresStore.read([store], from: results[0...1])[store]?.get()
            else {
                _ = choose(StoreState(), [])
                return []
            }
            let lines = try results.dropFirst(2).enumerated().flatMap { number, result in
                try result.rows.map {
                    try HistoryRule.Line($0, from: 0, isCurrent: currentOnly || number == 1)
                }
            }
            let chosen = choose(found.state, lines).map { lines[$0] }
            guard !chosen.isEmpty else { return [] }
            var versions = chosen.map { StoredVersion(line: $0, value: nil) }
            let values = try transaction.run(PostgresVersions.values(of: chosen, in: found))
            for row in values.flatMap(\.rows) {
                versions[try row.count(0) - 1].value = try row.bytesIfAny(1)
            }
            return versions
        }
    }

    func storesToPrune(_ rule: HistoryRule) throws(StorageError) -> [StoreReference] {
        try stores { state, account in
            state.history.isDue(within: rule.of(account).limits, now: rule.now)
        }
    }

    func pruneHistory(
        _ rule: HistoryRule, of store: StoreReference
    ) throws(StorageError) -> Int {
        try writing { transaction in
            let heads = PostgresStore.reading([store], isLocking: true)
            let versions = PostgresVersions.lines(of: store, key: nil)[0]
            let results = try transaction.run(heads + [versions, .account(store.account)])
            let found = try PostgresStore.read([store], from: results[..<heads.count])[store]
            guard var found = try found?.get() else { return 0 }
            let lines = try results[heads.count].rows.map {
                try HistoryRule.Line($0, from: 0, isCurrent: false)
            }
            let account = try results[heads.count + 1].rows.first.map(Account.init)
            let own = rule.of(account?.limits ?? AccountLimits())
            let (statements, count) = PostgresVersions.prune(lines, by: own, in: &found)
            try transaction.run(statements + PostgresStore.updating([found]))
            return count
        }
    }
}
