// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore
internal import UbiquityWire

@testable internal import UbiquityServer

/// Files of an earlier format open.
struct OlderFormatTests {
    /// As the first version made it, with one account, two devices (one of them revoked), a code
    /// and a store.
    private static let format1 = """
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
        INSERT INTO account VALUES ('00000000000000aa', 'ada', 1);
        INSERT INTO store VALUES (1, '00000000000000aa', 'notes', 1, 8, 1, 0, 1, 0, 0);
        INSERT INTO span VALUES (1, 1, 7);
        INSERT INTO passed VALUES (1, 5, 1), (1, 6, 1);
        PRAGMA application_id = 1432507254; PRAGMA user_version = 1;
        """

    private func write(to path: String) throws {
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try db.execute(sql: Self.format1)
            for (id, revoked) in [(5, nil), (6, 2)] as [(Int64, Int64?)] {
                try db.execute(
                    sql: "INSERT INTO device VALUES (?, ?, 'laptop', ?, 1, 1, ?)",
                    arguments: [
                        "00000000000000aa", id, SecretHash(of: "device\(id)").bytes, revoked,
                    ])
            }
            try db.execute(
                sql: "INSERT INTO code VALUES (?, '00000000000000aa', 9000, NULL)",
                arguments: [SecretHash(of: "code").bytes])
            try db.execute(
                sql: "INSERT INTO record VALUES (1, ?, 1, 5, 1, 1, ?)",
                arguments: [
                    Data("a".utf8),
                    Data(WireFormat.protobuf.encode(WireValue(PropertyListValue.integer(13)))),
                ])
        }
        try queue.close()
    }

    @Test func `a file of format 1 opens, with all that was in it`() throws {
        #expect(SQLiteSchema.applicationID == 1_432_507_254)
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try write(to: path)
        for _ in 0..<2 {
            let storage = try SQLiteServerStorage.openForServer(path)
            let account = try #require(storage.accounts().first)
            #expect(account == Sample.account)
            let found = try storage.device(credential: SecretHash(of: "device5"))
            let device = try #require(found)
            #expect(device.rights == DeviceRights(reference: device.reference))
            #expect(try storage.devices(of: account.id) == [device])
            #expect(try storage.device(credential: SecretHash(of: "device6")) == nil)
            #expect(try storage.keys(since: nil) == ["a"])
            #expect(try storage.apps().isEmpty)
            #expect(try storage.auditEntries(before: nil, max: 9).isEmpty)
            let rows = try storage.database.read { db in
                (
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM passed"),
                    try Int.fetchOne(db, sql: "PRAGMA user_version")
                )
            }
            #expect(rows.0 == 1)
            #expect(rows.1 == SQLiteSchema.version)
            try storage.close()
        }
        let storage = try SQLiteServerStorage.openForServer(path)
        let signedIn = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice("c2"), now: 1_000)
        #expect(
            signedIn.device.rights.stores == nil
                && signedIn.device.rights.expiresMilliseconds == nil)
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 500)))
        #expect(try storage.keys(since: nil) == ["a", "b"])
    }

    @Test func `a store of an earlier format is measured anew, may shrink, and not grow`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try write(to: path)
        let nothing = PropertyListValue.array(Array(repeating: .string(""), count: 200_000))
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try db.execute(
                sql: "INSERT INTO record VALUES (1, ?, 1, 5, 1, 1, ?)",
                arguments: [
                    Data("b".utf8), Data(WireFormat.protobuf.encode(WireValue(nothing))),
                ])
        }
        try queue.close()
        let storage = try SQLiteServerStorage.openForServer(path)
        func usage() throws -> Usage? { try storage.stores(of: Sample.account.id).first?.usage }
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
    @Test func `what an earlier format had forgotten counts as accepted from everybody`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        try write(to: path)
        let queue = try DatabaseQueue(path: path)
        try queue.write { try $0.execute(sql: "UPDATE store SET newest_forgotten = 900") }
        try queue.close()
        let storage = try SQLiteServerStorage.openForServer(path)
        let accepted = try storage.state().accepted
        #expect(accepted.floor.rawValue == 900)
        #expect(accepted.times.values.map(\.rawValue) == [900])
        try storage.close()
    }

    @Test func `entries of the audit log of an earlier format are kept, each counted once`() throws
    {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        try storage.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try OlderFormat.undoFormat5(db)
            try db.execute(
                sql: """
                    INSERT INTO audit VALUES (2, 7, 'device-renamed', '00000000000000aa', 5, 'device', 5),
                        (3, 8, 'device-renamed', '00000000000000aa', 5, 'device', 5)
                    """)
        }
        try queue.close()
        let next = try SQLiteServerStorage.openForServer(path)
        let id = DeviceID(rawValue: 5)
        let event = AuditEvent(.deviceRenamed, of: Sample.account.id, id, by: .device(id))
        try next.record([AuditEntry(event, at: 9)])
        let entries = try next.auditEntries(before: nil, max: 2)
        #expect(entries.map(\.number) == [3, 2])
        #expect(entries.map(\.count) == [2, 1])
        #expect(entries.map(\.last) == [9, 7])
        #expect(entries.allSatisfy { $0.event == event })
        try next.close()
    }

    @Test func `a device of format 6 has said nothing of its clock`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        try storage.addCode("code")
        let device = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device
        try storage.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write(OlderFormat.undoFormat7)
        try queue.close()
        let next = try SQLiteServerStorage.openForServer(path)
        #expect(try next.devices(of: Sample.account.id) == [device])
        let clock = ClockMeasurement(aheadMilliseconds: 1, milliseconds: 2)
        try next.note(LastSeenUpdate(clocks: [device.reference: clock]))
        #expect(try next.devices(of: Sample.account.id).first?.clock == clock)
        try next.close()
    }

    @Test(arguments: [
        OlderFormat.undoFormat8, OlderFormat.undoFormat9, OlderFormat.undoFormat10,
    ])
    func `the history is the same in the next format`(
        undo: @Sendable (Database) throws -> Void
    ) throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        for (number, key) in ["b", "a", "b", "c", "a", "b"].enumerated() {
            let write = Sample.record(key, .integer(Int64(number)), at: 500 + Int64(number))
            try storage.commit(Sample.push(write), now: 1_000 + Int64(number))
        }
        let listed = try storage.listed()
        #expect(listed.count == 6)
        try storage.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write(undo)
        try queue.close()
        let next = try SQLiteServerStorage.openForServer(path)
        #expect(try next.listed() == listed)
        try next.commit(Sample.push(Sample.record("a", nil, at: 600)), now: 2_000)
        #expect(try next.listed().count == 7)
        try next.close()
    }

    @Test func `a store's state is the same in the next format`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        try storage.fillForEveryField()
        var before = try storage.state()
        // What was before there was a history is not known.
        before.history = HistoryState(
            floor: RecordVersion.Moment(revision: before.lineage.revision, milliseconds: 0))
        let records = try storage.keys(since: nil)
        try storage.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write(OlderFormat.undoFormat6)
        try queue.close()
        for run: UInt64 in 100...101 {
            let next = try SQLiteServerStorage.openForServer(path)
            #expect(try next.state() == before)
            #expect(try next.keys(since: nil) == records)
            #expect(try next.storesWithDeletions() == [Sample.store])
            #expect(try next.keys(since: before.lineage.position) == [])
            let refused = Sample.push(Sample.record("a", .integer(1), at: 99_000_000))
            _ = try next.commit([refused], rules: Sample.rules(epoch: run))
            try next.close()
        }
    }

    @Test func `a store of an earlier format that cannot be read fails no other`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("test.sqlite")
        let storage = try SQLiteServerStorage.openForServer(path)
        try storage.makeSampleAccount()
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        let write = Sample.record("a", .integer(1), at: 500)
        for store in [Sample.store, other] { try storage.commit(Sample.push(write, to: store)) }
        try storage.close()
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in
            try OlderFormat.undoFormat6(db)
            try db.execute(sql: "UPDATE store SET keys = -1 WHERE id = 1")
        }
        try queue.close()
        let next = try SQLiteServerStorage.openForServer(path)
        #expect(throws: StorageError.unreadable) { try next.read(Sample.store, since: nil) }
        let results = try next.commit(
            [Sample.push(write), Sample.push(write, to: other)], rules: Sample.rules())
        #expect(
            results.map { $0.map(\.results) } == [
                .failure(.unreadable), .success([.committed([.applied])]),
            ])
        try next.close()
    }
}
