// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import GRDB
import Testing
import Ubiquity
import UbiquityCore

/// Tests what is only true on a real disk.
struct SQLiteStorageTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.file("a/b/store.sqlite")
    }

    private func failure(opening path: String) -> LocalStorageError? {
        do throws(LocalStorageError) { _ = try SQLiteStorage(path: path) } catch { return error }
        return nil
    }

    private func makeFile(_ bytes: Data) throws {
        try PrivateFiles.makeFolder(folder.file("a/b"))
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    #if !os(Windows)
    @Test func `only the person can access the file and the created folders`() throws {
        let storage = try SQLiteStorage(path: path)
        _ = try storage.save(SaveBatch(after: 0, [try .confirmed("a", .integer(1))]))
        #expect(try TemporaryFolder.permissions(folder.file("a")) == 0o700)
        #expect(try TemporaryFolder.permissions(folder.file("a/b")) == 0o700)
        #expect(try TemporaryFolder.permissions(path) == 0o600)
        #expect(try TemporaryFolder.permissions(path + "-wal") == 0o600)
    }
    #endif

    #if os(Linux)
    @Test func `a save into a file that is not at its path any more is none`() throws {
        for suffix in ["", "-wal"] {
            for isReplaced in [false, true] {
                let path = folder.file("\(suffix)\(isReplaced)/store.sqlite")
                let storage = try SQLiteStorage(path: path)
                defer { storage.close() }
                _ = try storage.save(SaveBatch(after: 0, [try .confirmed("a", .integer(1))]))
                try FileManager.default.moveItem(atPath: path + suffix, toPath: path + ".moved")
                if isReplaced {
                    try FileManager.default.copyItem(
                        atPath: path + ".moved", toPath: path + suffix)
                }
                let error = #expect(throws: LocalStorageError.self) {
                    try storage.save(SaveBatch(after: 1, [try .confirmed("a", .integer(2))]))
                }
                #expect(error?.reason == .moved)
                #expect(throws: LocalStorageError.self) { try storage.changes(after: 0) }
                if isReplaced { try FileManager.default.removeItem(atPath: path + suffix) }
                try FileManager.default.moveItem(atPath: path + ".moved", toPath: path + suffix)
                let batch = SaveBatch(after: 1, [try .confirmed("a", .integer(2))])
                #expect(try storage.save(batch) == .saved(version: 2))
            }
        }
    }

    @Test func `on a full disk, values can be read, and saved when there is room`() throws {
        guard let disk = try SmallDisk() else { return }
        let path = disk.folder.file("home/a store? #1%.sqlite")
        let first = try SQLiteStorage(path: path)
        _ = try first.save(SaveBatch(after: 0, [try .confirmed("a", .integer(1))]))
        first.close()
        try disk.fill()
        let second = try SQLiteStorage(path: path)
        defer { second.close() }
        #expect(try second.load().entries.map(\.key) == [try Key("a")])
        #expect(try second.refusedWrites().isEmpty)
        #expect(try StoreInspection(path: path).entries.count == 1)
        let change = SaveBatch(after: 1, [try .confirmed("a", .integer(2))])
        let error = #expect(throws: LocalStorageError.self) { try second.save(change) }
        #expect(error?.reason == .diskFull)
        disk.makeRoom()
        #expect(try second.save(change) == .saved(version: 2))
        #expect(try second.changes(after: 1)?.entries.count == 1)
        let third = try SQLiteStorage(path: path)
        defer { third.close() }
        #expect(try third.load().version == 2)
    }

    /// A lock of SQLite's is the process's, and the closing of any descriptor of the file cancels it.
    @Test func `an opening leaves the locks that this process has on the file`() throws {
        let storage = try SQLiteStorage(path: path)
        defer { storage.close() }
        let locks = try ownLocks(on: path)
        #expect(!locks.isEmpty)
        let other = try SQLiteStorage(path: path)
        #expect(try ownLocks(on: path) == locks)
        other.close()
        #expect(try ownLocks(on: path) == locks)
        _ = try StoreInspection(path: path)
        #expect(try ownLocks(on: path) == locks)
    }

    /// As the kernel has them: which bytes, and for what.
    private func ownLocks(on path: String) throws -> Set<String> {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        let file = try #require(attributes[.systemFileNumber] as? NSNumber).stringValue
        let own = "\(ProcessInfo.processInfo.processIdentifier)"
        let bytes = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/locks")).readToEnd()
        let locks = String(decoding: bytes ?? Data(), as: UTF8.self)
        // "1: POSIX  ADVISORY  READ 4711 fe:00:123 1073741826 1073742335"
        return Set(
            locks.split(separator: "\n").compactMap { line in
                let fields = line.split(separator: " ").map(String.init)
                guard fields.count > 7, fields[1] == "POSIX", fields[4] == own,
                    fields[5].hasSuffix(":" + file)
                else { return nil }
                return fields[3] + " " + fields[6] + "-" + fields[7]
            })
    }
    #endif

    @Test func `a file that is not a database is named and left as it is`() throws {
        let text = Data(String(repeating: "no database ", count: 100).utf8)
        try makeFile(text)
        let error = try #require(failure(opening: path))
        #expect(error.reason == .foreign)
        #expect(error.description.contains(path))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == text)
    }

    /// A full disk ends the making of a store there.
    @Test func `an empty file is a store without values, and is used when there is room`() throws {
        try makeFile(Data())
        let inspection = try StoreInspection(path: path)
        #expect(inspection.entries.isEmpty && inspection.usage == Usage())
        #expect(try SQLiteStorage(path: path).load().entries.isEmpty)
    }

    @Test func `another program's database is left as it is`() throws {
        try SQLiteStorage(path: path).close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[68] = 1  // The header's application_id.
        try makeFile(bytes)
        #expect(failure(opening: path)?.reason == .foreign)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
    }

    /// 2 to 4 are formats of programs from before the first release.
    @Test(arguments: [0, 2, 4, 99] as [UInt8])
    func `a file of a format that this program does not know is named and left as it is`(
        _ format: UInt8
    ) throws {
        try SQLiteStorage(path: path).close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes[63] = format  // The header's user_version.
        try makeFile(bytes)
        let error = try #require(failure(opening: path))
        #expect(error.reason == .newer)
        #expect(error.description.contains("its format is \(format)"))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == bytes)
    }

    @Test func `after large saves the log is emptied, and nothing is lost`() throws {
        let storage = try SQLiteStorage(path: path)
        var logBytes: Int? {
            try? FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int
        }
        _ = try storage.save(SaveBatch(after: 0, [try .confirmed("small", .integer(1))]))
        storage.tidy()
        #expect(try #require(logBytes) > 0)
        let large = try (0..<100).map {
            try StoredEntry.confirmed("k\($0)", .data(Array(repeating: 7, count: 10_000)))
        }
        _ = try storage.save(SaveBatch(after: 1, large))
        storage.tidy()
        #expect(logBytes == 0)
        _ = try storage.save(SaveBatch(after: 2, [try .confirmed("small", .integer(2))]))
        let content = try SQLiteStorage(path: path).load()
        #expect(content.version == 3)
        #expect(content.entries.count == 101)
    }

    @Test
    func `a deletion that is dropped leaves no row, and other entries say that they are gone`()
        throws
    {
        let (one, other) = (try SQLiteStorage(path: path), try SQLiteStorage(path: path))
        let entries = [
            try StoredEntry.confirmed("deleted", nil), try .confirmed("value", .integer(1)),
        ]
        _ = try one.save(SaveBatch(after: 0, entries))
        #expect(try other.changes(after: 0)?.entries.count == 2)
        let gone = try ["deleted", "value"].map { StoredEntry(key: try UbiquityCore.Key($0)) }
        _ = try one.save(SaveBatch(after: 1, gone))
        #expect(try other.changes(after: 1)?.entries.map(\.key.string) == ["value"])
        let rows = try DatabaseQueue(path: path).read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM entry")
        }
        #expect(rows == 1)
    }

    @Test func `what is tidied after it was closed does nothing`() throws {
        let storage = try SQLiteStorage(path: path)
        let large = try StoredEntry.confirmed("k", .data(Array(repeating: 7, count: 1_000_000)))
        _ = try storage.save(SaveBatch(after: 0, [large]))
        storage.close()
        storage.tidy()
        #expect(try SQLiteStorage(path: path).load().entries == [large])
    }

    @Test func `a damaged file says so and what to do`() throws {
        let storage = try SQLiteStorage(path: path)
        let entries = try (0..<100).map {
            try StoredEntry.confirmed("k\($0)", .data(Array(repeating: 7, count: 1_000)))
        }
        _ = try storage.save(SaveBatch(after: 0, entries))
        storage.close()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes.replaceSubrange(4_096..<bytes.count, with: Data(count: bytes.count - 4_096))
        try makeFile(bytes)
        let error = #expect(throws: LocalStorageError.self) {
            _ = try SQLiteStorage(path: path).load()
        }
        #expect(error?.reason == .damaged)
        #expect(error?.description.contains("Nothing was moved or changed") == true)
    }

    @Test func `a folder in the file's place, or a file in the folder's, is refused`() throws {
        try PrivateFiles.makeFolder(path)
        #expect(failure(opening: path)?.reason == .notWritable)
        try Data().write(to: URL(fileURLWithPath: folder.file("f")))
        #expect(failure(opening: folder.file("f/store.sqlite"))?.reason == .notWritable)
    }

    @Test func `many that make the same file at once all succeed, and lose no save`() async throws {
        let path = path
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    let storage = try SQLiteStorage(path: path)
                    var version = try storage.load().version
                    let entry = try StoredEntry.confirmed("k\(number)", .integer(1))
                    while case .conflict(let changes) =
                        try storage.save(SaveBatch(after: version, [entry]))
                    { version = changes.version }
                }
            }
            try await group.waitForAll()
        }
        let content = try SQLiteStorage(path: path).load()
        #expect(content.version == 8)
        #expect(content.entries.count == 8)
    }

    @Test func `a file that several make at the same time is made once, and opens for all`()
        async throws
    {
        for round in 0..<200 {
            let folder = try TemporaryFolder()
            let path = folder.file("store-\(round).sqlite")
            try await withThrowingTaskGroup(of: Int64.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        let storage = try SQLiteStorage(path: path)
                        defer { storage.close() }
                        return try storage.load().version
                    }
                }
                for try await version in group { #expect(version == 0) }
            }
        }
    }
}
