// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Testing
import Ubiquity
import UbiquityCore

/// Tests the promises of ``LocalStorage`` with each implementation.
struct LocalStorageTests {
    /// Two processes' views of one disk, and a way to open a third.
    struct Disk {
        let open: () throws -> any LocalStorage

        init(_ backend: Backend) throws {
            switch backend {
            case .memory:
                let storage = MemoryStorage()
                open = { storage }
            case .sqlite:
                let folder = try TemporaryFolder()
                open = { try SQLiteStorage(path: folder.file("store.sqlite")) }
            }
        }
    }

    @Test(arguments: Backend.allCases)
    func `a new disk is empty and has version 0`(_ backend: Backend) throws {
        let disk = try Disk(backend)
        defer { withExtendedLifetime(disk) {} }
        let storage = try disk.open()
        #expect(try storage.load() == DiskChanges())
        #expect(try storage.changes(after: 0) == nil)
        #expect(try storage.refusedWrites().isEmpty)
    }

    @Test(arguments: Backend.allCases)
    func `every value comes back the same, bit for bit`(_ backend: Backend) throws {
        let disk = try Disk(backend)
        let entries = try hardValues.map { try StoredEntry.confirmed($0.key, $0.value) }
        let storage = try disk.open()
        #expect(try storage.save(SaveBatch(after: 0, entries)) == .saved(version: 1))
        storage.close()
        #expect(Set(try disk.open().load().entries) == Set(entries))
    }

    @Test(arguments: Backend.allCases)
    func `keys that a careless disk confuses stay apart`(_ backend: Backend) throws {
        let disk = try Disk(backend)
        let keys = [
            "a", "A", "a\0", "a\0b", "\u{E9}", "e\u{301}", "a ", "👩🏽‍🚀", "'; DROP TABLE entry",
        ]
        let entries = try keys.map { try StoredEntry.confirmed($0, .string($0)) }
        _ = try disk.open().save(SaveBatch(after: 0, entries))
        #expect(Set(try disk.open().load().entries) == Set(entries))
    }

    @Test(arguments: Backend.allCases)
    func `a pending write keeps its transaction, provisional stamp, mark and what its author had`(
        _ backend: Backend
    ) throws {
        let disk = try Disk(backend)
        let provisional = ProvisionalStamp(
            madeAt: ClockReading(wall: -5, uptime: .max, boot: .max),
            seen: HybridTimestamp(rawValue: .max))
        let pending = PendingWrite(
            record: try record("a", nil, at: .max), transaction: .max, provisional: provisional,
            had: Stamp(HybridTimestamp(rawValue: .max), DeviceID(rawValue: .max)),
            isUnkept: true)
        let entries = [
            StoredEntry(
                key: try Key("a"), confirmed: try record("a", .integer(1)), pending: pending),
            StoredEntry(
                key: try Key("b"),
                pending: PendingWrite(record: try record("b", .integer(2)), transaction: 0),
                wasUnkept: true),
        ]
        _ = try disk.open().save(SaveBatch(after: 0, entries))
        #expect(Set(try disk.open().load().entries) == Set(entries))
    }

    @Test(arguments: Backend.allCases)
    func `a save on an older version writes nothing and tells what is new`(
        _ backend: Backend
    ) throws {
        let disk = try Disk(backend)
        let (one, other) = (try disk.open(), try disk.open())
        var meta = StoredMeta()
        meta.syncsRequested = 7
        let a = try StoredEntry.confirmed("a", .integer(1))
        _ = try one.save(SaveBatch(after: 0, [a], meta: meta))

        let late = SaveBatch(after: 0, [try .confirmed("a", .integer(2))], meta: StoredMeta())
        let expected = DiskChanges(version: 1, entries: [a], meta: meta)
        #expect(try other.save(late) == .conflict(expected))
        #expect(try one.load() == expected)
    }

    @Test(arguments: Backend.allCases)
    func `changes are what others saved, once, and nil where nothing is new`(
        _ backend: Backend
    ) throws {
        let disk = try Disk(backend)
        let (one, other) = (try disk.open(), try disk.open())
        #expect(try other.load().version == 0)
        _ = try one.save(SaveBatch(after: 0, [try .confirmed("a", .integer(1))]))
        let b = try StoredEntry.confirmed("b", .integer(1))
        _ = try one.save(SaveBatch(after: 1, [b]))

        #expect(try other.changes(after: 0)?.entries.count == 2)
        #expect(try other.changes(after: 2) == nil)
        #expect(try other.changes(after: 1)?.entries == [b])
        #expect(try one.changes(after: 2) == nil)
        #expect(try other.save(SaveBatch(after: 2)) == .saved(version: 3))
        #expect(try other.changes(after: 3) == nil)
        #expect(try one.changes(after: 2) == DiskChanges(version: 3))
    }

    @Test(arguments: Backend.allCases)
    func `an entry that came to nothing is told to others, but not to a newcomer`(
        _ backend: Backend
    ) throws {
        let disk = try Disk(backend)
        let (one, other) = (try disk.open(), try disk.open())
        _ = try one.save(SaveBatch(after: 0, [try .confirmed("a", .integer(1))]))
        _ = try other.load()
        let nothing = StoredEntry(key: try Key("a"))
        _ = try one.save(SaveBatch(after: 1, [nothing]))
        #expect(try other.changes(after: 1)?.entries == [nothing])
        #expect(try disk.open().load() == DiskChanges(version: 2))
    }

    @Test(arguments: Backend.allCases)
    func `a save without a meta leaves it as it was`(_ backend: Backend) throws {
        let disk = try Disk(backend)
        var meta = StoredMeta()
        meta.account = "0123"
        meta.cursor = Cursor("1-2")
        meta.limits.key = .utf16Units(128)
        meta.correction = ClockCorrection(
            reading: ClockReading(wall: 1, uptime: 2, boot: .max), serverMilliseconds: 3)
        let storage = try disk.open()
        _ = try storage.save(SaveBatch(after: 0, meta: meta))
        _ = try storage.save(SaveBatch(after: 1))
        #expect(try disk.open().load().meta == meta)
    }

    @Test(arguments: Backend.allCases)
    func `refused writes are the newest, the newest first`(_ backend: Backend) throws {
        let disk = try Disk(backend)
        defer { withExtendedLifetime(disk) {} }
        let storage = try disk.open()
        func refused(_ number: Int) throws -> RefusedWrite {
            RefusedWrite(
                record: try record("k\(number)", number % 2 == 0 ? .integer(1) : nil),
                refusal: Refusal(code: "quota-bytes", detail: "too much"))
        }
        let max = SaveBatch.refusedWritesMax
        var batch = SaveBatch(after: 0)
        batch.refused = try (0..<max).map(refused)
        _ = try storage.save(batch)
        batch.expectedVersion = 1
        batch.refused = [try refused(max), try refused(max + 1)]
        _ = try storage.save(batch)
        #expect(try storage.refusedWrites() == (2...max + 1).reversed().map(refused))
        // A save that was reported as failed is made again, and may be there already.
        batch.refused = [try refused(max + 1)]
        batch.expectedVersion += 1
        _ = try storage.save(batch)
        #expect(try storage.refusedWrites() == (2...max + 1).reversed().map(refused))

        // What was never sent takes no room from what was refused, and is not for the app to forget.
        var superseded = try refused(max + 2)
        superseded.refusal = .superseded
        batch.refused = [superseded]
        batch.expectedVersion += 1
        _ = try storage.save(batch)
        #expect(
            try storage.refusedWrites()
                == [superseded] + (2...max + 1).reversed().map(refused))
        try storage.forgetRefusedWrites()
        #expect(try storage.refusedWrites() == [superseded])
    }
}
