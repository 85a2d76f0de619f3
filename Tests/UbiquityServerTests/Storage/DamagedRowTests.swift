// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A database with content that a server has not written.
struct DamagedRowTests {
    private static let other = Account(
        id: AccountID(rawValue: 0xBB), name: AccountName("bob")!, createdMilliseconds: 1)
    private static let otherStore = StoreReference(
        account: other.id, identifier: Sample.store.identifier)

    /// Opens a database that has rows in every table.
    private func open(_ path: String) throws -> SQLiteServerStorage {
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        try storage.createAccount(Self.other, accountsMax: 9, by: .operatorLocally)
        try storage.setOperatorHash(SecretHash(of: "operator"), recordedAt: nil)
        let app = RegisteredApp(identifier: Sample.store.identifier, registered: 1)
        _ = try storage.register(app, appsMax: 9, by: .operatorLocally)
        let terms = CredentialTerms(stores: [Sample.store.identifier], milliseconds: 1_000)
        try storage.addCode("code", terms: terms)
        try storage.addCode("second", terms: terms)
        let code = SecretHash(of: "code")
        let device = try storage.redeem(code, by: Sample.newDevice(), now: 1_000).device
        _ = try storage.signIn(
            Identity(issuer: "i", subject: "s"), preferredName: nil, accountsMax: 9,
            by: Sample.newDevice("identity"), now: 1_000)
        try storage.addSampleRequest("request", terms: terms, now: 1_000)
        try commitAll(to: Sample.store, in: storage)
        try storage.commit(
            Sample.push(Sample.record("a", .integer(1), at: 1), to: Self.otherStore))
        let deviceStore = LastSeenUpdate.DeviceStore(device: device.reference, store: Sample.store)
        try storage.note(
            LastSeenUpdate(
                seenMilliseconds: [device.reference: 2_000],
                passed: [deviceStore: Sample.position(1)]))
        _ = try storage.erase(AccountID(rawValue: 1), now: 1, by: .operatorLocally)
        return storage
    }

    private func commitAll(to store: StoreReference, in storage: any ServerStorage) throws {
        try storage.commit(
            Sample.push(
                Sample.record("a", .integer(1), at: 1), Sample.record("b", nil, at: 1), to: store))
        for run in 1...80 { try storage.commit(Sample.push(Self.count(run), to: store)) }
    }

    private static func count(_ run: Int) -> UbiquityCore.Record {
        var record = Sample.record("k", .array([.integer(1), .integer(1)]), at: Int64(run))
        record.key = record.key.part(PartID("c\(run)")!)
        return record
    }

    /// Does everything that a server does with the data it reads.
    private func useAll(of storage: SQLiteServerStorage) throws {
        _ = try? storage.operatorHash()
        _ = try? storage.accounts()
        for name in ["ada", "bob"] {
            guard let account = try? storage.account(named: AccountName(name)!) else { continue }
            _ = try? storage.devices(of: account.id)
            for summary in (try? storage.stores(of: account.id)) ?? [] {
                let key = StoreReference(account: account.id, identifier: summary.identifier)
                _ = try? storage.read(key, since: summary.position)
            }
        }
        for credential in ["credential", "identity"] {
            _ = try storage.rights(of: [SecretHash(of: credential)])
        }
        _ = try? storage.signIn(
            Identity(issuer: "i", subject: "s"), preferredName: nil, accountsMax: 9,
            by: Sample.newDevice("next"), now: 1_000)
        _ = try? storage.auditEntries(before: nil, max: 100)
        _ = try? storage.keys(since: nil)
        _ = try? storage.keys(since: Sample.position(1))
        _ = try? storage.redeem(SecretHash(of: "second"), by: Sample.newDevice("2"), now: 1_000)
        let userCode = SecretHash(of: "code of request")
        _ = try? storage.request(userCode: userCode, now: 1_000)
        let account = Sample.account.id
        try? storage.decide(
            userCode, .approved(account, CredentialTerms()), now: 1_000, by: .operatorLocally)
        _ = try? storage.redeem(
            request: SecretHash(of: "request"), by: Sample.newDevice("3"), now: 1_000)
        try storage.database.read { _ = try SQLiteRecord.countUnreadable($0) }
    }

    /// None of these may fail, because each concerns everybody.
    private func keepHouse(_ storage: SQLiteServerStorage) throws {
        _ = try storage.apps()
        try storage.removeCodes(expiredBy: 10_000)
        try storage.addSampleRequest("new", now: 10_000)
        _ = try storage.removeDevices(expiredBy: 10_000, now: 10_000)
        try storage.removeAuditEntries(
            try storage.auditSurplus(by: AuditRule(entriesMax: 0)))
        let rule = CompactionRule(
            retentionMilliseconds: 0, liveMilliseconds: 0, tombstonesMax: 0)
        for store in try storage.storesWithDeletions() {
            _ = try? storage.compact(rule, folded: rule, in: store, now: 10_000)
        }
    }

    private static let values = [
        "NULL", "'text'", "x'FF'", "''", "1.5", "-1", "9223372036854775807",
        "-9223372036854775808",
    ]
    /// Without these, no server starts.
    private static let vital: Set = ["running", "secret"]

    @Test func `what must not be kept is removed beside a version that is damaged`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        for (number, key) in ["a", "b", "c", "a", "b", "c"].enumerated() {
            let write = Sample.record(key, .integer(Int64(number)), at: 500 + Int64(number))
            try storage.commit(Sample.push(write))
        }
        try storage.unpackHistory()
        func versions() throws -> [Data] {
            try storage.database.read {
                try Data.fetchAll(
                    $0, sql: "SELECT key FROM version WHERE value IS NOT NULL ORDER BY key")
            }
        }
        #expect(try versions() == [Data("a".utf8), Data("b".utf8), Data("c".utf8)])
        try storage.database.write {
            try $0.execute(sql: "UPDATE version SET outcome = 99 WHERE key IN (x'61', x'62')")
        }
        let records = ["a", "c"].map { Sample.record($0, .integer(9), at: 900) }
        let push = Push([try Transaction(records, unkept: Set(records.map(\.key)))])
        let results = try storage.commit(
            [PendingPush(store: Sample.store, push: push)], rules: Sample.rules())
        #expect(try results.map { try $0.get().results } == [[.committed([.applied, .applied])]])
        #expect(try versions() == [Data("b".utf8)])
        try storage.close()
    }

    @Test func `a push that would prune a damaged history changes nothing`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        for number: Int64 in 1...30 {
            try storage.commit(Sample.push(Sample.record("a", .integer(number), at: 500 + number)))
        }
        try storage.database.write { db in
            let pack = "(SELECT min(ended) FROM version WHERE key = x'')"
            try db.execute(sql: "UPDATE version SET value = x'ff' WHERE ended = \(pack)")
            #expect(db.changesCount == 1)
        }
        let before = try storage.state()
        let push = Sample.push(Sample.record("a", .integer(0), at: 900))
        let rules = Sample.rules(history: HistoryLimits(bytesMax: 2_000))
        #expect(try storage.commit([push], rules: rules) == [.failure(.unreadable)])
        #expect(try storage.state() == before)
        #expect(try storage.keys(since: before.lineage.position) == [])
        // Within its limit, the store takes pushes.
        #expect(try storage.commit([push], rules: Sample.rules())[0].get().isEmpty == false)
        #expect(throws: StorageError.unreadable) { try storage.listed() }
        #expect(try storage.database.read { try SQLiteVersion.countUnreadable($0) } == 1)
        try storage.close()
    }

    @Test(arguments: Self.values)
    func `whatever is in a row, the program continues, and others are served`(
        value: String
    ) throws {
        let folder = try TemporaryFolder()
        let whole = folder.file("whole.sqlite")
        let storage = try open(whole)
        let columns = try storage.database.writeWithoutTransaction { db in
            // Accepts null everywhere, like a damaged file.
            try db.execute(
                sql: """
                    PRAGMA writable_schema = ON;
                    UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table';
                    PRAGMA writable_schema = RESET
                    """)
            let tables = try String.fetchAll(
                db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
            return try tables.filter { !Self.vital.contains($0) }.flatMap { table in
                try db.columns(in: table).map { (table, $0.name) }
            }
        }
        try storage.close()
        #expect(columns.count > 50)
        // A third of them, other ones in each run: each is a database of its own.
        for (table, column) in columns.shuffled().prefix(columns.count / 3) {
            let path = folder.file("\(table).\(column).sqlite")
            try FileManager.default.copyItem(atPath: whole, toPath: path)
            do { try serve(path, table, column, value) } catch {
                Issue.record("\(table).\(column) = \(value): \(error)")
            }
        }
    }

    private func serve(
        _ path: String, _ table: String, _ column: String, _ value: String
    ) throws {
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.database.writeWithoutTransaction { db in
            let own = Set(try db.columns(in: table).map(\.name))
            let owner = table == "account" ? "id" : own.contains("account") ? "account" : nil
            let isOwn = owner.map { "\($0) = '\(Sample.account.id.string)'" }
            let condition = isOwn ?? (own.contains("store") ? "store = 1" : "true")
            do {
                try db.execute(
                    sql: """
                        UPDATE OR IGNORE \(table) SET \(column) = \(value) WHERE \(condition)
                        """)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_MISMATCH {
                // A row's number is one in every file.
            }
        }
        let outcomes = try storage.commit(
            [
                Sample.push(Sample.record("a", .integer(2), at: 900)),
                Sample.push(Self.count(3)), Sample.push(Self.count(90)),
                Sample.push(Sample.record("a", .integer(2), at: 900), to: Self.otherStore),
            ], rules: Sample.rules())
        guard case .success = outcomes.last else {
            Issue.record("\(table).\(column) = \(value): \(outcomes)")
            return
        }
        try useAll(of: storage)
        try keepHouse(storage)
        try storage.close()
    }
}
