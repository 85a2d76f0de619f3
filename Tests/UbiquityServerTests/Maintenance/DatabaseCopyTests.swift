// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import ProcessHarness
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A server's data moves between a data folder and a PostgreSQL database as it is.
@Suite(.enabled(if: PostgresServer.isInstalled))
@OwnThread struct DatabaseCopyTests {
    private let folder: TemporaryFolder
    private let database: PostgresDatabase
    private let ada = Sample.account.id
    private let identity = Identity(issuer: "https://issuer.example\0", subject: "4\0002")

    init() throws {
        folder = try TemporaryFolder()
        database = try PostgresDatabase(in: folder)
    }

    private var settings: PostgresSettings {
        get throws { .patient(try database.url) }
    }

    private func sqlite(_ name: String = "data") throws -> SQLiteServerStorage {
        let data = DataFolder(path: folder.file(name))
        try data.make()
        try data.makeDatabaseFile()
        return try SQLiteServerStorage.openForServer(data.databasePath)
    }

    private func postgres() throws -> PostgresServerStorage {
        var settings = try settings
        settings.usesOwnClock = true
        return try PostgresServerStorage.openForServer(settings)
    }

    private func copyToDatabase(_ name: String = "data") throws -> DatabaseCopy {
        try DatabaseCopy(from: folder.file(name), to: settings) { _, _ in }
    }

    private func copyToFolder(_ name: String) throws -> DatabaseCopy {
        try DatabaseCopy(from: settings, to: folder.file(name)) { _, _ in }
    }

    /// Everything that a storage may have: rights, folded counts of all kinds of numbers, tombstones
    /// that were dropped and that were not, many spans, a large value, an erased account.
    private func fill(_ storage: any ServerStorage) throws {
        try storage.makeSampleAccount()
        try storage.setOperatorHash(SecretHash(of: "operator"), recordedAt: nil)
        try storage.recordChanges(ofLimits: ["keysMax": "7"], now: 1)
        _ = try storage.register(
            RegisteredApp(identifier: Sample.store.identifier, name: "Nötes", registered: 3),
            appsMax: 9,
            by: .operatorLocally)
        _ = try storage.signIn(
            identity, preferredName: AccountName("Zoë"), accountsMax: 9,
            by: Sample.newDevice("bob's", displayName: "a\0b"), now: 5)
        try storage.addCode("unused", terms: CredentialTerms(stores: [Sample.store.identifier]))
        try storage.addCode(
            "used", terms: CredentialTerms(stores: [Sample.store.identifier], milliseconds: 900))
        let device = try storage.redeem(
            SecretHash(of: "used"), by: Sample.newDevice(), now: 1_000
        ).device.reference
        let handover = try #require(HandoverName([UInt8](0..<16)))
        try storage.keep([1, 0, 2], as: handover, by: device, isConfined: false, now: 1_000)
        try storage.addSampleRequest("asked", displayName: "a\0c", now: 1_000)
        try storage.addSampleRequest("granted", now: 1_000)
        try storage.decide(
            SecretHash(of: "code of granted"),
            .approved(ada, CredentialTerms(milliseconds: 5, latestMilliseconds: 9_999)),
            now: 1_000, by: .device(device.id))
        try storage.addRunningTime(700)
        for run in 1...20 as ClosedRange<UInt64> {
            let time = Int64(500 + run)
            try storage.commit(
                Sample.push(
                    Sample.record("k\(run % 4)", .integer(Int64(run)), at: time),
                    Sample.record("gone \(run)", nil, at: time)), epoch: run)
        }
        let large = PropertyListValue.data([UInt8](repeating: 7, count: 700_000))
        for key in ["large", "larger", "\u{10FFFF}", "\0"] {
            try storage.commit(Sample.push(Sample.record(key, large, at: 600)))
        }
        try count(in: storage)
        var seen = LastSeenUpdate()
        seen.seenMilliseconds[device] = 2_000
        seen.passed[.init(device: device, store: Sample.store)] = Sample.position(9, run: 9)
        seen.clocks[device] = ClockMeasurement(aheadMilliseconds: -5, milliseconds: 1_900)
        seen.versions[device] = "0.2.0"
        try storage.note(seen)
        let rule = CompactionRule(
            retentionMilliseconds: 0, liveMilliseconds: 90_000, tombstonesMax: 9_999)
        #expect(try storage.compact(rule, in: Sample.store, now: 2_000) > 0)
        let carol = Account(id: .random(), name: AccountName("carol")!, createdMilliseconds: 2)
        try storage.createAccount(carol, accountsMax: 9, by: .operatorLocally)
        let carols = StoreReference(account: carol.id, identifier: Sample.store.identifier)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500), to: carols))
        #expect(try storage.erase(carol.id, now: 9, by: .operatorLocally))
    }

    /// Enough runs for some of them to be folded: integers, reals and what is no number.
    private func count(in storage: any ServerStorage) throws {
        let store = StoreReference(account: ada, identifier: try StoreIdentifier("counts"))
        let numbers: [PropertyListValue] = [.integer(1), .real(0.5), .real(.nan), .real(.infinity)]
        for run in 1...200 {
            let total = numbers[run % numbers.count]
            var record = Sample.record("k", .array([.integer(1), total]), at: Int64(run))
            record.key = record.key.part(PartID("c\(run)")!)
            try storage.commit(Sample.push(record, to: store))
        }
    }

    /// The content of a storage as devices and operators see it.
    private struct View: Equatable {
        var accounts: [Account]
        var devices: [[Device]]
        var stores: [[StoreSummary]]
        var apps: [RegisteredApp]
        var audit: [AuditEntry]
        var operatorHash: SecretHash?
        var reads: [StoreReference: Set<StoredRecord>]

        init(_ storage: any ServerStorage) throws {
            accounts = try storage.accounts()
            devices = try accounts.map { try storage.devices(of: $0.id) }
            stores = try accounts.map { try storage.stores(of: $0.id) }
            apps = try storage.apps()
            audit = try storage.auditEntries(before: nil, max: 999)
            operatorHash = try storage.operatorHash()
            reads = [:]
            for (account, stores) in zip(accounts, stores) {
                for store in stores {
                    let name = StoreReference(account: account.id, identifier: store.identifier)
                    guard case .changes(let records, _, _, _) = try storage.read(name, since: nil)
                    else { continue }
                    reads[name] = Set(records)
                }
            }
        }
    }

    @Test func `a folder's data goes to a database and back, and nothing has changed`() throws {
        let original = try sqlite()
        try fill(original)
        let before = try View(original)
        try original.close()
        let there = try copyToDatabase()
        let node = try postgres()
        #expect(try View(node) == before)
        try node.close()
        let back = try copyToFolder("back")
        #expect(there.tables == back.tables)
        #expect(back.tables.allSatisfy { $0.rows > 0 })
        let copy = try sqlite("back")
        #expect(try View(copy) == before)
        try copy.close()
    }

    @Test func `devices continue from their positions, and counts and tombstones are known`() throws
    {
        let original = try sqlite()
        try fill(original)
        let position = try #require(original.positions(of: [Sample.store])[Sample.store])
        let old = Sample.position(3, run: 3)
        let before = try original.read(Sample.store, since: old)
        try original.close()
        _ = try copyToDatabase()
        let node = try postgres()
        #expect(try node.read(Sample.store, since: old) == before)
        guard
            case .changes(let news, position: position, isWhole: false, _) = try node.read(
                Sample.store, since: position)
        else { throw Trouble("the position does not hold") }
        #expect(news.isEmpty)
        // What was counted before is not added again, and a late write does not undo a deletion.
        let counts = StoreReference(account: ada, identifier: try StoreIdentifier("counts"))
        let known = try node.read(counts, since: nil)
        try count(in: node)
        guard case .changes(let first, _, _, _) = known,
            case .changes(let second, _, _, _) = try node.read(counts, since: nil)
        else { throw Trouble("the store cannot be read") }
        #expect(Set(first) == Set(second))
        let late = Sample.record("gone 20", .integer(1), at: 519)
        try node.commit(Sample.push(late))
        #expect(try node.keys(since: nil)?.contains("gone 20") == false)
        let pushed = try node.commit(Sample.push(Sample.record("new", .integer(1), at: 900)))
        #expect(pushed?.position.revision == position.revision + 1)
        #expect(try node.keys(since: position) == ["new"])
        let again = try node.signIn(
            identity, preferredName: nil, accountsMax: 2, by: Sample.newDevice("next"), now: 6)
        #expect(again.account.name.string == "Zoë")
        try node.close()
    }

    @Test func `accounts that are made after a copy are counted on, and so is the audit log`()
        throws
    {
        let original = try sqlite()
        try fill(original)
        let last = try #require(original.auditEntries(before: nil, max: 1).first).number
        try original.close()
        _ = try copyToDatabase()
        let node = try postgres()
        let dave = Account(id: .random(), name: AccountName("dave")!, createdMilliseconds: 2)
        #expect(throws: StorageError.tooMany("accounts")) {
            try node.createAccount(dave, accountsMax: 2, by: .operatorLocally)
        }
        try node.createAccount(dave, accountsMax: 3, by: .operatorLocally)
        #expect(try node.auditEntries(before: nil, max: 1)[0].number > last)
        try node.close()
        #expect(try DatabaseCheck(settings) { _ in }.isCountRight)
    }

    @Test func `a target with data is refused, and stays as it is`() throws {
        let original = try sqlite()
        try original.makeSampleAccount()
        try original.close()
        let node = try postgres()
        let bob = Account(id: .random(), name: AccountName("bob")!, createdMilliseconds: 2)
        try node.createAccount(bob, accountsMax: 9, by: .operatorLocally)
        try node.close()
        #expect(throws: DatabaseCopyError.databaseNotEmpty) { try copyToDatabase() }
        #expect(try database.query("SELECT name FROM ubiquity.account") == "bob")
        let path = folder.file("data")
        #expect(throws: DatabaseCopyError.folderNotEmpty(path: path)) { try copyToFolder("data") }
    }

    @Test func `a database on which only a server was started takes a copy`() throws {
        let original = try sqlite()
        try fill(original)
        let before = try View(original)
        try original.close()
        var node = try postgres()
        try node.recordChanges(ofLimits: ["keysMax": "8", "other": "9"], now: 1)
        try node.setOperatorHash(SecretHash(of: "another"), recordedAt: nil)
        try node.close()
        let copy = try copyToDatabase()
        #expect(copy.tables.rows(in: "known_limit") == 1)
        node = try postgres()
        #expect(try View(node) == before)
        try node.close()
    }

    @Test func `nothing is copied while a server is at work on either side`() throws {
        let original = try sqlite()
        try original.makeSampleAccount()
        try original.close()
        let path = folder.file("data")
        do {
            let lock = try FolderLock(DataFolder(path: path))
            defer { withExtendedLifetime(lock) {} }
            #expect(throws: DatabaseCopyError.folderInUse(path: path)) { try copyToDatabase() }
        }
        let node = try postgres()
        _ = try node.accounts()
        for copy in [{ try copyToDatabase() }, { try copyToFolder("back") }] {
            #expect {
                try copy()
            } throws: { error in
                if case DatabaseCopyError.inUse = error { true } else { false }
            }
        }
        try node.close()
        #expect(!FileManager.default.fileExists(atPath: folder.file("back/ubiquity.sqlite")))
    }

    @Test(arguments: ["record SET value = value || '\\x00'", "device SET seen = seen + 1"])
    func `a copy that differs from the original is not kept`(change: String) throws {
        let original = try sqlite()
        try fill(original)
        try original.close()
        _ = try settings.migrate()
        // After the copy has written, and before it compares.
        try database.query(
            """
            CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                UPDATE ubiquity.\(change); RETURN NULL; END $$;
            CREATE TRIGGER change AFTER UPDATE ON ubiquity.meta EXECUTE FUNCTION change()
            """)
        let table = String(change.prefix { $0 != " " })
        #expect(throws: DatabaseCopyError.differs(table: table)) { try copyToDatabase() }
        #expect(try database.query("SELECT count(*) FROM ubiquity.account") == "0")
        #expect(try database.query("SELECT count(*) FROM ubiquity.record") == "0")
    }

    @Test func `each copy has a history of its own`() throws {
        let original = try sqlite()
        try original.makeSampleAccount()
        try original.close()
        _ = try settings.migrate()
        let incarnation = "SELECT incarnation FROM ubiquity.meta"
        let before = try database.query(incarnation)
        _ = try copyToDatabase()
        #expect(try database.query(incarnation) != before)
    }

    @Test func `a check finds rows that a server cannot use`() throws {
        let node = try postgres()
        try fill(node)
        try node.close()
        let sound = try DatabaseCheck(settings) { _ in }
        #expect(sound.unreadable == 0 && sound.isCountRight)
        try database.query(
            """
            UPDATE ubiquity.record SET value = '\\xFF' WHERE value IS NOT NULL
                AND key = (SELECT key FROM ubiquity.record WHERE value IS NOT NULL
                    ORDER BY key DESC LIMIT 1);
            UPDATE ubiquity.store SET head = '\\x07' WHERE identifier = 'counts';
            UPDATE ubiquity.account SET limits = 'x' WHERE name = 'ada';
            INSERT INTO ubiquity.code (hash, account, expires) VALUES ('\\x01', 'nobody', 1);
            UPDATE ubiquity.directory SET accounts = accounts + 1
            """)
        let check = try DatabaseCheck(settings) { _ in }
        #expect(check.unreadable == 4)
        #expect(!check.isCountRight)
    }
}
