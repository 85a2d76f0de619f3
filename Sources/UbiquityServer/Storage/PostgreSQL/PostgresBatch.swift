// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The pushes of one transaction. What they need is locked and read at once, then they are decided
/// in order, and what they change is written at once, with the commit.
struct PostgresBatch {
    private let pushes: [PendingPush]
    private let rules: CommitRules
    private let isFull: Bool
    private let transaction: PostgresTransaction
    /// The stores that were to be made first.
    private let made: Set<StoreReference>
    private let accounts: Set<AccountID>
    private let signedIn: Set<DeviceReference>
    /// Of the accounts' keys; none for an account that is not sealed.
    private let generations: [AccountID: UInt32]
    let moment: PostgresMoment
    private var stores: [StoreReference: Result<PostgresStore, StorageError>]
    private var records: [StoreReference: PostgresRecords] = [:]
    /// The stores of the pushes that are to be answered as committed.
    private var touched: Set<StoreReference> = []
    /// The statements that prune the histories of stores.
    private var pruning: [StoreReference: [SQLStatement]] = [:]
    /// The stores that must be made before the pushes can be decided.
    private(set) var missing: Set<StoreReference> = []
    private(set) var results: [Result<CommittedPush, PushRefusal>] = []

    /// Locks and reads, in one flight.
    /// - Parameter making: The stores to make first, as far as they may be made.
    init(
        _ pushes: [PendingPush], making: Set<StoreReference>, rules: CommitRules, isFull: Bool,
        storage: PostgresServerStorage, _ transaction: PostgresTransaction
    ) throws {
        self.pushes = pushes
        self.isFull = isFull
        self.transaction = transaction
        made = making
        let asked = Set(pushes.map(\.store)).sorted()
        let devices = Array(Set(pushes.compactMap(\.rights?.reference)))
        let keys = pushes.requests { $0.transactions.lazy.flatMap { $0.writes.lazy.map(\.key) } }
        let counts = pushes.requests(\.countedKeys)
        var flight: [SQLStatement] = []
        func add(_ statements: [SQLStatement]) -> Range<Int> {
            flight += statements
            return (flight.count - statements.count)..<flight.count
        }
        let making = add(
            Self.making(Array(making).sorted(), storesPerAccountMax: rules.storesPerAccountMax))
        let reading = add(PostgresStore.reading(asked, isLocking: true))
        let records = add([PostgresRecords.reading(keys)])
        let counting = add(counts.isEmpty ? [] : [PostgresRecords.readingCounts(counts)])
        let checking = add(devices.isEmpty ? [] : [Self.checking(devices)])
        // After the locks of the stores, which the mark needs too: a push after the mark stores nothing
        // in clear.
        let sealing = add([Self.sealing(Set(pushes.map(\.store.account)))])
        let looking = add([storage.momentStatement])
        let results = try transaction.run(flight)

        accounts =
            try results[making].first.map { result in
                Set(try result.rows.map { try $0.account(0) })
            } ?? []
        stores = try PostgresStore.read(asked, from: results[reading])
        signedIn = try Set(
            results[checking].flatMap(\.rows).map { devices[try $0.count(0) - 1] })
        generations = Dictionary(
            try results[sealing.lowerBound].rows.map { row in
                (try row.account(0), try SealingState.generation(row, 1))
            }
        ) { first, _ in first }
        moment = try PostgresMoment(results[looking.lowerBound])
        self.rules = storage.rules(rules, at: moment)
        for row in results[records.lowerBound].rows {
            let request = keys[try row.count(0) - 1]
            self.records[request.store, default: PostgresRecords()].take(row, of: request.key)
        }
        for row in results[counting].flatMap(\.rows) {
            let request = counts[try row.count(0) - 1]
            self.records[request.store, default: PostgresRecords()]
                .take(row, countOf: request.key)
        }
    }

    /// The stores that exist, as they were read.
    var revisions: [HistoryWatch.Revision] {
        stores.values.compactMap { try? $0.get().storedPosition }
    }

    /// The positions of the stores that have changed.
    /// - Parameter areAllNew: Whether an earlier attempt may have changed them.
    func positions(areAllNew: Bool) -> [(store: StoreReference, position: Position)] {
        touched.compactMap { name in
            guard let store = try? stores[name]?.get() else { return nil }
            let position = store.state.lineage.position
            return areAllNew || position.revision > store.storedRevision ? (name, position) : nil
        }
    }

    // MARK: - Statements

    private static func checking(_ devices: [DeviceReference]) -> SQLStatement {
        SQLStatement(
            """
            SELECT w.place FROM unnest($1::text[], $2::bigint[])
                WITH ORDINALITY AS w (account, id, place)
            CROSS JOIN LATERAL (SELECT FROM ubiquity.device d
                WHERE d.account = w.account AND d.id = w.id OFFSET 0) AS d
            """, .texts(devices.map(\.account.string)),
            .integers(devices.map { Int64(bitPattern: $0.id.rawValue) }))
    }

    private static func sealing(_ accounts: Set<AccountID>) -> SQLStatement {
        SQLStatement(
            """
            SELECT id, \(SealingState.generationColumn) FROM ubiquity.account
            WHERE id = ANY ($1::text[]) AND sealing IS NOT NULL
            """, .texts(accounts.map(\.string)))
    }

    /// Locks the accounts, which returns those that exist, and makes stores.
    private static func making(
        _ stores: [StoreReference], storesPerAccountMax: Int
    ) -> [SQLStatement] {
        guard !stores.isEmpty else { return [] }
        return [
            SQLStatement(
                """
                SELECT id FROM ubiquity.account WHERE id = ANY ($1::text[]) ORDER BY id FOR UPDATE
                """, .texts(Set(stores.map(\.account.string)).sorted())),
            SQLStatement(
                """
                INSERT INTO ubiquity.store (account, identifier, number, revision, newest, head)
                SELECT account, identifier, number, 0, 0, '' FROM (
                    SELECT w.*, row_number() OVER (PARTITION BY w.account ORDER BY w.place) AS nth
                    FROM unnest($1::text[], $2::text[], $3::bigint[])
                        WITH ORDINALITY AS w (account, identifier, number, place)
                    WHERE EXISTS (SELECT FROM ubiquity.account a WHERE a.id = w.account)
                        AND NOT EXISTS (
                            SELECT FROM ubiquity.store s
                            WHERE s.account = w.account AND s.identifier = w.identifier)) AS n
                WHERE nth + (SELECT count(*) FROM ubiquity.store s WHERE s.account = n.account)
                    <= $4
                """,
                PostgresStore.names(of: stores) + [
                    .integers(stores.map { _ in Int64.random(in: 1 ... .max) }),
                    .integer(Int64(storesPerAccountMax)),
                ]),
        ]
    }

    // MARK: - Deciding

    /// Decides all pushes. If ``missing`` is not empty then, nothing may be written.
    /// - Throws: ``StorageError``, ``PostgresFailure``; the transaction must be rolled back then.
    mutating func decide() throws {
        try pruneHistories()
        try readFoldedCounts()
        for push in pushes {
            do { results.append(.success(try decide(push))) } catch let refusal as PushRefusal {
                results.append(.failure(refusal))
            } catch StorageError.unreadable { results.append(.failure(.unreadable)) }
        }
    }

    /// - Throws: Also ``PushRefusal`` and ``StorageError/unreadable``, before anything has changed.
    private mutating func decide(_ waiting: PendingPush) throws -> CommittedPush {
        guard !isFull || waiting.push.onlyTakesAway else { throw PushRefusal.full }
        // Read after the lock of the store, which a revocation needs too: a push after a revocation
        // stores nothing.
        let refusal = rules.refusal(of: waiting.rights) { signedIn.contains($0) }
        if let refusal { throw refusal }
        let name = waiting.store
        let rules = rules.of(waiting.rights, generation: generations[name.account] ?? 0)
        var store = try stores[name]?.get()
        try rules.checkSealing(waiting.push, of: store?.state ?? StoreState())
        var known = records.removeValue(forKey: name) ?? PostgresRecords()
        defer { records[name] = known }
        if let store { try known.readLate(waiting.push, of: store, transaction) }
        defer { known.forgetLate() }
        var records = try known.records(of: waiting.push)
        guard rules.mayAnswer(waiting.push, over: records) else { throw PushRefusal.answerTooLarge }
        let counted = waiting.push.countedKeys
        var folded: [FoldedIncrement] = []
        if let store, !counted.isEmpty {
            records.merge(try known.counts(of: counted)) { $1 }
            let queries = waiting.push.foldedQueries(records)
            try readFoldedCounts(queries, of: store, &known)
            folded = known.increments(queries)
        }
        var state = store?.state ?? StoreState()
        let committed: CommittedPush
        do throws(ClockAhead) {
            committed = try state.admit(
                waiting.push, records: records, folded: folded, by: rules.admission,
                in: rules.run.map(name.epoch(inRun:)) ?? moment.epoch(of: name))
        } catch { throw PushRefusal.clockAhead(error) }
        if store == nil, !committed.isEmpty {
            guard made.contains(name) else {
                // Decided again once there is a store.
                missing.insert(name)
                return committed
            }
            throw accounts.contains(name.account)
                ? PushRefusal.tooManyStores : PushRefusal.noSuchAccount
        }
        store?.state = state
        guard let store else { return committed }
        stores[name] = .success(store)
        touched.insert(name)
        known.commit(committed)
        return committed
    }

    /// Prunes the histories that have become too large, as they were before the pushes. That takes a flight.
    /// A store whose history cannot be read is as one that cannot be read itself.
    private mutating func pruneHistories() throws {
        var large: [(store: PostgresStore, rule: HistoryRule)] = []
        for push in pushes {
            let rule = rules.of(push.rights, generation: 0).admission.historyRule
            guard let store = try? stores[push.store]?.get(),
                !large.contains(where: { $0.store.reference == push.store }),
                store.state.history.exceeds(rule.limits, byFar: !large.isEmpty)
            else { continue }
            large.append((store, rule))
        }
        guard !large.isEmpty else { return }
        let results = try transaction.run(
            large.map { PostgresVersions.lines(of: $0.store.reference, key: nil)[0] })
        for (found, result) in zip(large, results) {
            var store = found.store
            do {
                let lines = try result.rows.map {
                    try HistoryRule.Line($0, from: 0, isCurrent: false)
                }
                pruning[store.reference] =
                    PostgresVersions.prune(lines, by: found.rule, in: &store).statements
                stores[store.reference] = .success(store)
            } catch StorageError.unreadable { stores[store.reference] = .failure(.unreadable) }
        }
    }

    /// Reads the folded counts that the pushes are likely to need, in one flight.
    private mutating func readFoldedCounts() throws {
        var asked: [(store: PostgresStore, queries: [FoldedQuery])] = []
        for push in pushes {
            let counted = push.push.countedKeys
            guard !counted.isEmpty, let store = try? stores[push.store]?.get(),
                let records = try? records[push.store]?.counts(of: counted) ?? [:]
            else { continue }
            asked.append((store, push.push.foldedQueries(records)))
        }
        guard !asked.isEmpty else { return }
        let results = try transaction.run(
            asked.flatMap { PostgresFoldedIncrement.reading($0.queries, of: $0.store) })
        for (index, (store, queries)) in asked.enumerated() {
            let found = Array(results[(2 * index)...(2 * index + 1)])
            // What cannot be read is asked for again, for its push alone.
            guard let increments = try? PostgresFoldedIncrement.increments(found) else { continue }
            records[store.reference, default: PostgresRecords()].take(increments, for: queries)
        }
    }

    private func readFoldedCounts(
        _ queries: [FoldedQuery], of store: PostgresStore, _ known: inout PostgresRecords
    ) throws {
        let queries = known.unanswered(queries)
        guard !queries.isEmpty else { return }
        let results = try transaction.run(PostgresFoldedIncrement.reading(queries, of: store))
        known.take(try PostgresFoldedIncrement.increments(results), for: queries)
    }

    // MARK: - Writing

    /// Writes everything and commits, in one flight. A history is pruned even if the pushes of its store
    /// are refused, or these would read it again and again. The row of each touched store is written even
    /// if nothing in it changes: then its answer waits for the flush and for the standby, also if
    /// the push repeats one whose commit is in doubt.
    mutating func commit() throws {
        var states: [PostgresStore] = []
        var unused: [PostgresStore] = []
        var changes: [(store: PostgresStore, written: HeldRecord)] = []
        var versions: [(store: PostgresStore, versions: PostgresVersions)] = []
        var increments: [(store: PostgresStore, increment: FoldedIncrement)] = []
        for name in stores.keys.sorted() {
            guard let store = try? stores[name]?.get() else { continue }
            guard store.state.lineage.revision > 0 else {
                unused.append(store)
                touched.remove(name)
                continue
            }
            guard touched.contains(name) || pruning[name] != nil else { continue }
            states.append(store)
            guard let known = records[name] else { continue }
            changes += known.changes.map { (store, $0) }
            versions.append((store, known.versions))
            increments += known.changedIncrements.map { (store, $0) }
        }
        // Before what the pushes add: they may forget a key whose history gets a note.
        var statements = states.flatMap { pruning[$0.reference] ?? [] }
        statements += PostgresVersions.writing(versions) + PostgresStore.updating(states)
        if !changes.isEmpty {
            statements.append(PostgresRecords.writing(changes, running: moment.running))
        }
        if !increments.isEmpty {
            statements.append(
                PostgresFoldedIncrement.writing(increments, running: moment.running))
        }
        if !unused.isEmpty {
            statements.append(
                SQLStatement(
                    """
                    DELETE FROM ubiquity.store s USING unnest($1::text[], $2::text[])
                        AS w (account, identifier)
                    WHERE s.account = w.account AND s.identifier = w.identifier AND revision = 0
                    """, PostgresStore.names(of: unused.map(\.reference))))
        }
        try transaction.commit(statements)
    }
}

extension [PendingPush] {
    /// Each store with each of its keys, once.
    fileprivate func requests(
        _ keys: (Push) -> some Sequence<Key>
    ) -> [PostgresRecords.Request] {
        var requests: [PostgresRecords.Request] = []
        var known: Set<PostgresRecords.Request> = []
        for push in self {
            for key in keys(push.push) {
                let request = PostgresRecords.Request(store: push.store, key: key)
                if known.insert(request).inserted { requests.append(request) }
            }
        }
        return requests
    }
}
