// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Files of version 0.1.0 open.
struct OlderFormatTests {
    /// As version 0.1.0 made it, in two steps, with an account and a store.
    private static let format2 = """
        CREATE TABLE secret (name TEXT PRIMARY KEY NOT NULL, hash BLOB NOT NULL) WITHOUT ROWID;
        CREATE TABLE account (
            id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL UNIQUE, created INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE device (
            account TEXT NOT NULL, id INTEGER NOT NULL, title TEXT NOT NULL,
            credential BLOB NOT NULL UNIQUE, created INTEGER NOT NULL, seen INTEGER NOT NULL,
            revoked INTEGER, PRIMARY KEY (account, id)) WITHOUT ROWID;
        CREATE TABLE code (
            hash BLOB PRIMARY KEY NOT NULL, account TEXT NOT NULL, expires INTEGER NOT NULL,
            used INTEGER) WITHOUT ROWID;
        CREATE TABLE store (
            id INTEGER PRIMARY KEY, account TEXT NOT NULL, identifier TEXT NOT NULL,
            revision INTEGER NOT NULL, bytes INTEGER NOT NULL, keys INTEGER NOT NULL,
            deletions INTEGER NOT NULL, newest INTEGER NOT NULL,
            newest_forgotten INTEGER NOT NULL, forgotten_revision INTEGER NOT NULL,
            UNIQUE (account, identifier));
        CREATE TABLE span (
            store INTEGER NOT NULL, first_revision INTEGER NOT NULL, epoch INTEGER NOT NULL,
            PRIMARY KEY (store, first_revision)) WITHOUT ROWID;
        CREATE TABLE record (
            store INTEGER NOT NULL, key BLOB NOT NULL, time INTEGER NOT NULL,
            device INTEGER NOT NULL, revision INTEGER NOT NULL, committed INTEGER NOT NULL,
            value BLOB, PRIMARY KEY (store, key)) WITHOUT ROWID;
        CREATE INDEX record_revision ON record (store, revision);
        CREATE INDEX deletion ON record (store, revision, committed) WHERE value IS NULL;
        CREATE TABLE passed (
            store INTEGER NOT NULL, device INTEGER NOT NULL, revision INTEGER NOT NULL,
            PRIMARY KEY (store, device)) WITHOUT ROWID;
        ALTER TABLE device ADD COLUMN stores TEXT;
        ALTER TABLE device ADD COLUMN expires INTEGER;
        ALTER TABLE code ADD COLUMN stores TEXT;
        ALTER TABLE code ADD COLUMN credential_milliseconds INTEGER;
        CREATE TABLE identity (
            issuer TEXT NOT NULL, subject TEXT NOT NULL, account TEXT NOT NULL,
            PRIMARY KEY (issuer, subject)) WITHOUT ROWID;
        CREATE INDEX identity_account ON identity (account);
        CREATE INDEX code_account ON code (account);
        CREATE TABLE app (
            identifier TEXT PRIMARY KEY NOT NULL, registered INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE audit (
            number INTEGER PRIMARY KEY, time INTEGER NOT NULL, deed TEXT NOT NULL, account TEXT,
            device INTEGER, actor TEXT NOT NULL, actor_device INTEGER);
        CREATE TABLE chore (name TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;
        INSERT INTO account VALUES ('00000000000000aa', 'ada', 1);
        INSERT INTO store VALUES (1, '00000000000000aa', 'notes', 1, 8, 1, 0, 1, 0, 0);
        INSERT INTO span VALUES (1, 1, 7);
        PRAGMA application_id = 1432507254; PRAGMA user_version = 2;
        """

    static func write(to path: String, _ fill: (Database) throws -> Void) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try db.execute(sql: format2)
            try fill(db)
        }
        try queue.close()
    }

    /// Stores a record as version 0.1.0 did.
    static func insert(_ record: UbiquityCore.Record, revision: Int64, _ db: Database) throws {
        let stored = StoredRecord(record)
        try db.execute(
            sql: "INSERT INTO record VALUES (1, ?, ?, ?, ?, ?, ?)",
            arguments: [
                stored.key, bits(stored.stamp.timestamp), stored.stamp.device.bits, revision,
                100 * revision, stored.value,
            ])
    }

    private static func bits(_ time: HybridTimestamp) -> Int64 {
        Int64(bitPattern: time.rawValue)
    }

    private static let ada = Sample.account.id
    private static let sensor = DeviceID(rawValue: 6)
    private static let compacted = HybridTimestamp(milliseconds: 400)
    private static let kept = Sample.record("a", .integer(13), at: 500)
    /// A tombstone that counts as two.
    private static var gone: UbiquityCore.Record {
        var record = Sample.record("tags", nil, at: 600, by: sensor)
        record.key = record.key.part(PartID(String(repeating: "e", count: 100))!)
        return record
    }

    /// Fills every table.
    private static func fill(_ db: Database) throws {
        try insert(kept, revision: 2, db)
        try insert(gone, revision: 3, db)
        try db.execute(
            sql: """
                UPDATE store SET revision = 3, deletions = 1, newest = ?, newest_forgotten = ?,
                    forgotten_revision = 1
                """, arguments: [bits(gone.stamp.timestamp), bits(compacted)])
        try db.execute(
            sql: "INSERT INTO secret VALUES ('operator', ?)",
            arguments: [SecretHash(of: "operator").bytes])
        try db.execute(
            sql: """
                INSERT INTO device VALUES ('\(ada)', -2, 'laptop', ?, 1, 2, NULL, NULL, NULL),
                    ('\(ada)', 6, 'sensor', ?, 3, 4, NULL, 'notes', 5000)
                """,
            arguments: [SecretHash(of: "laptop").bytes, SecretHash(of: "sensor").bytes])
        try db.execute(
            sql: """
                INSERT INTO code VALUES (?, '\(ada)', 9000, NULL, 'notes', 60000),
                    (?, '\(ada)', 9000, 100, NULL, NULL)
                """, arguments: [SecretHash(of: "unused").bytes, SecretHash(of: "used").bytes])
        try db.execute(
            sql: """
                INSERT INTO identity VALUES ('https://id.example', '42', '\(ada)');
                INSERT INTO app VALUES ('notes', 3);
                INSERT INTO audit VALUES (1, 7, 'device-renamed', '\(ada)', 6, 'device', 6),
                    (2, 8, 'device-renamed', '\(ada)', 6, 'device', 6);
                INSERT INTO chore VALUES ('scrub');
                INSERT INTO passed VALUES (1, -2, 3), (1, 6, 2)
                """)
    }

    @Test func `a file of version 0.1.0 opens, with all that was in it`() throws {
        #expect(SQLiteSchema.applicationID == 1_432_507_254)
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try Self.write(to: path, Self.fill)
        for _ in 0..<2 {
            let storage = try SQLiteServerStorage.openForServer(path)
            try expectAccount(in: storage)
            try expectStore(in: storage)
            let chores = try storage.database.read { db in
                try String.fetchAll(db, sql: "SELECT name FROM chore")
            }
            #expect(try chores == ["scrub"] && storage.erasedStores() == 0)
            try storage.close()
        }
    }

    private func expectAccount(in storage: SQLiteServerStorage) throws {
        let id = Self.sensor
        #expect(try storage.operatorHash() == SecretHash(of: "operator"))
        #expect(try storage.accounts() == [Sample.account])
        let devices = try storage.devices(of: Self.ada)
        #expect(devices.map(\.reference.id) == [Sample.device, id])
        #expect(devices.map(\.displayName) == ["laptop", "sensor"])
        #expect(devices.map(\.createdMilliseconds) == [1, 3])
        #expect(devices.map(\.seenMilliseconds) == [2, 4])
        #expect(devices.map(\.rights.stores) == [nil, [Sample.store.identifier]])
        #expect(devices.map(\.rights.expiresMilliseconds) == [nil, 5_000])
        #expect(devices.allSatisfy { $0.clock == nil && $0.version == nil })
        for (name, device) in zip(["laptop", "sensor"], devices) {
            #expect(try storage.device(credential: SecretHash(of: name)) == device)
        }
        let app = RegisteredApp(identifier: Sample.store.identifier, registered: 3)
        #expect(try storage.apps() == [app])
        let entries = try storage.auditEntries(before: nil, max: 9)
        let event = AuditEvent(.deviceRenamed, of: Self.ada, id, by: .device(id))
        #expect(entries.map(\.event) == [event, event])
        #expect(entries.map(\.time) == [8, 7] && entries.map(\.count) == [1, 1])
    }

    private func expectStore(in storage: SQLiteServerStorage) throws {
        var state = StoreState()
        state.lineage = Lineage(
            spans: [Lineage.Span(firstRevision: 1, epoch: 7)], revision: 3, compactedRevision: 1)
        state.usage = Usage(bytes: 8, keys: 1)
        state.newest = Self.gone.stamp.timestamp
        state.newestCompacted = Self.compacted
        state.deletions = 2
        state.accepted = VersionVector(
            times: [
                Sample.device: Self.kept.stamp.timestamp, Self.sensor: Self.gone.stamp.timestamp,
            ], floor: Self.compacted)
        // What was before there was a history is not known.
        state.history.floor = RecordVersion.Moment(revision: 3, milliseconds: 0)
        #expect(try storage.state() == state)
        #expect(storage.running == 300)
        func records(since position: Position?) throws -> [UbiquityCore.Record]? {
            guard
                case .changes(let records, _, _, _) = try storage.read(
                    Sample.store, since: position)
            else { return nil }
            return try records.map { try $0.record() }
        }
        #expect(try records(since: nil) == [Self.kept])
        #expect(try records(since: Position(epoch: 7, revision: 2)) == [Self.gone])
        #expect(try records(since: Position(epoch: 7, revision: 0)) == nil)
        #expect(try storage.storesWithDeletions() == [Sample.store])
        let holdings = try storage.holdings(of: Sample.store, key: Self.kept.key)
        #expect(holdings.passed == [Sample.device: 3, Self.sensor: 2])
        #expect(holdings.entries == [DeliveryRule.Item(revision: 2, author: Sample.device)])
    }

    @Test func `a server goes on with a file of version 0.1.0`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try Self.write(to: path, Self.fill)
        let storage = try SQLiteServerStorage.openForServer(path)
        let signedIn = try storage.redeem(
            SecretHash(of: "unused"), by: Sample.newDevice("new"), now: 1_000
        ).device
        #expect(signedIn.rights.stores == [Sample.store.identifier])
        #expect(signedIn.rights.expiresMilliseconds == 61_000)
        #expect(throws: StorageError.codeInvalid) {
            try storage.redeem(SecretHash(of: "used"), by: Sample.newDevice("no"), now: 1_000)
        }
        let again = try storage.signIn(
            Identity(issuer: "https://id.example", subject: "42"), preferredName: nil,
            accountsMax: 1, by: Sample.newDevice("again"), now: 1_000)
        #expect(again.account == Sample.account)
        let clock = ClockMeasurement(aheadMilliseconds: 1, milliseconds: 2)
        try storage.note(LastSeenUpdate(clocks: [signedIn.reference: clock]))
        let found = try storage.device(credential: SecretHash(of: "new"))
        #expect(found?.clock == clock)
        let committed = try storage.commit(Sample.push(Sample.record("a", .integer(14), at: 700)))
        #expect(committed?.results == [.committed([.applied])])
        #expect(committed?.position.revision == 4)
        let versions = try storage.versions(
            of: Sample.store, key: Self.kept.key, currentOnly: false
        ) { _, lines in
            lines.indices.filter { lines[$0].ended != nil }
        }
        let old = try #require(try versions.first?.version())
        #expect(versions.count == 1 && old.record == Self.kept)
        #expect(old.came == RecordVersion.Moment(revision: 2, milliseconds: 0))
        #expect(old.ended == RecordVersion.Moment(revision: 4, milliseconds: 1_000))
        try storage.close()
    }

    /// Version 0.1.0 counted every tombstone as one.
    @Test func `what version 0.1.0 deleted is written again, however long its key is`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try Self.write(to: path, Self.fill)
        let storage = try SQLiteServerStorage.openForServer(path)
        var again = Sample.record("tags", .integer(1), at: 700)
        again.key = Self.gone.key
        let committed = try storage.commit(Sample.push(again))
        #expect(committed?.results == [.committed([.applied])])
        try storage.close()
        let next = try SQLiteServerStorage.openForServer(path)
        #expect(try next.state().deletions == 0)
        #expect(try next.keys(since: nil) == ["a", "tags"])
        try next.close()
    }

    @Test func `a file of version 0.1.0 gets the tables of a new one`() throws {
        let folder = try TemporaryFolder()
        try Self.write(to: folder.file("older.sqlite"), Self.fill)
        let tables = try ["older.sqlite", "new.sqlite"].map { name in
            let storage = try SQLiteServerStorage.openForServer(folder.file(name))
            defer { try? storage.close() }
            return try storage.database.read { db in
                let rows = try String.fetchAll(
                    db, sql: "SELECT type || name || coalesce(sql, '') FROM sqlite_master")
                let version = try Int.fetchOne(db, sql: "PRAGMA user_version")
                return Set(rows.map { $0.filter { !$0.isWhitespace } } + ["\(version!)"])
            }
        }
        #expect(tables[0] == tables[1])
        #expect(tables[0].count > 20 && tables[0].contains("\(SQLiteSchema.version)"))
    }

    @Test(arguments: [1, 3, 9])
    func `a format that no release wrote is refused, and the file stays as it is`(
        format: Int
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try Self.write(to: path) { try $0.execute(sql: "PRAGMA user_version = \(format)") }
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        #expect(throws: ServerStartError.databaseUnreleased(path: path, version: format)) {
            try SQLiteServerStorage.openForServer(path)
        }
        let reason = "its format is \(format), which no release wrote"
        #expect(throws: BackupError.notBackup(path: path, reason: reason)) {
            try BackupFile(path)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    }

    @Test func `a backup of version 0.1.0 is restored`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("copy")
        try Self.write(to: path, Self.fill)
        let data = folder.file("data")
        let restored = try Restoration(
            of: path, into: data, replaces: false, signsOutDevices: false)
        #expect((restored.accounts, restored.devices) == (1, 2))
        let storage = try SQLiteServerStorage.openForServer(DataFolder(path: data).databasePath)
        try expectStore(in: storage)
        try storage.close()
    }

    @Test func `a store of version 0.1.0 is measured anew, may shrink, and not grow`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let nothing = PropertyListValue.array(Array(repeating: .string(""), count: 200_000))
        try Self.write(to: path) { db in
            try Self.insert(Sample.record("a", .integer(13), at: 1), revision: 1, db)
            try Self.insert(Sample.record("b", nothing, at: 1), revision: 1, db)
        }
        let storage = try SQLiteServerStorage.openForServer(path)
        func usage() throws -> Usage? { try storage.stores(of: Self.ada).first?.usage }
        #expect(try usage() == Usage(bytes: 8 + 1_600_000, keys: 2))
        func isTaken(_ key: String, _ value: PropertyListValue?, at time: Int64) throws -> Bool {
            let push = try storage.commit(Sample.push(Sample.record(key, value, at: time)))
            return push?.results.first == .committed([.applied])
        }
        #expect(try !isTaken("c", .integer(1), at: 500))
        #expect(try isTaken("a", .boolean(true), at: 500))
        #expect(try usage() == Usage(bytes: 1 + 1_600_000, keys: 2))
        #expect(try isTaken("b", nil, at: 500))
        #expect(try usage() == Usage(bytes: 1, keys: 1))
        try storage.close()
    }

    /// Else a device whose push was taken and forgotten could bring back what was deleted.
    @Test func `what version 0.1.0 had forgotten counts as accepted from everybody`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try Self.write(to: path) { db in
            try Self.insert(Sample.record("a", .integer(13), at: 1), revision: 1, db)
            try db.execute(
                sql: "UPDATE store SET newest_forgotten = ?",
                arguments: [Self.bits(Self.compacted)])
        }
        let storage = try SQLiteServerStorage.openForServer(path)
        let accepted = try storage.state().accepted
        #expect(accepted.floor == Self.compacted && accepted[Sample.device] == Self.compacted)
        for device in [Sample.device, Self.sensor] {
            let late = Sample.record("b", .integer(1), at: 399, by: device)
            let commit = try storage.commit(Sample.push(late))
            #expect(commit?.results == [.refused(.olderThanCompacted)])
        }
        try storage.close()
    }

    @Test func `entries of the audit log of version 0.1.0 are counted on`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try Self.write(to: path, Self.fill)
        let storage = try SQLiteServerStorage.openForServer(path)
        let id = Self.sensor
        let event = AuditEvent(.deviceRenamed, of: Self.ada, id, by: .device(id))
        try storage.record([AuditEntry(event, at: 9)])
        let entries = try storage.auditEntries(before: nil, max: 9)
        #expect(entries.map(\.number) == [2, 1])
        #expect(entries.map(\.count) == [2, 1])
        #expect(entries.map(\.last) == [9, 7])
        #expect(entries.allSatisfy { $0.event == event })
        try storage.close()
    }

    @Test func `a store of version 0.1.0 that cannot be read fails no other`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let other = StoreReference(account: Self.ada, identifier: try StoreIdentifier("other"))
        try Self.write(to: path) { db in
            try Self.insert(Self.kept, revision: 1, db)
            try db.execute(
                sql: """
                    INSERT INTO store VALUES (2, '\(Self.ada)', 'other', 0, 0, 0, 0, 0, 0, 0);
                    UPDATE store SET revision = -1 WHERE id = 1
                    """)
        }
        let storage = try SQLiteServerStorage.openForServer(path)
        #expect(throws: StorageError.unreadable) { try storage.read(Sample.store, since: nil) }
        let write = Sample.record("a", .integer(1), at: 600)
        let results = try storage.commit(
            [Sample.push(write), Sample.push(write, to: other)], rules: Sample.rules())
        #expect(
            results.map { $0.map(\.results) } == [
                .failure(.unreadable), .success([.committed([.applied])]),
            ])
        try storage.close()
    }
}
