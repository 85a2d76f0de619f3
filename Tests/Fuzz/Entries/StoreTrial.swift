// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import GRDB
internal import Ubiquity
internal import UbiquityCore

/// A store's file, opened as an app opens it.
enum StoreTrial {
    /// It is a store, whose values keep the laws and with which an engine works, or an error that
    /// says what it is.
    static func check(_ path: String) throws {
        do {
            let storage = try SQLiteStorage(path: path)
            defer { storage.close() }
            _ = try storage.refusedWrites()
            let disk = try storage.load()
            try check(disk)
            _ = try storage.changes(after: 0)
            try save(to: storage, disk)
            try storage.forgetRefusedWrites()
        } catch let error as LocalStorageError {
            try must(!error.description.isEmpty, "an error says nothing")
        }
    }

    private static func check(_ disk: DiskChanges) throws {
        for entry in disk.entries {
            for record in [entry.confirmed, entry.pending?.record].compactMap(\.self) {
                try Laws.check(record)
            }
        }
        var device = EngineTrial(disk: disk)
        try device.connect()
        try device.write()
        try device.fail(LinkFailure(.unreachable, "the stream broke"))
        var other = EngineTrial(disk: disk, leads: false)
        try other.ask()
    }

    /// Saves an entry, and checks that it is there.
    private static func save(to storage: SQLiteStorage, _ disk: DiskChanges) throws {
        let record = Samples.record(.string("saved"))
        let entry = StoredEntry(key: record.key, confirmed: record)
        let batch = SaveBatch(
            expectedVersion: disk.version, entries: [entry], meta: disk.meta,
            refused: [RefusedWrite(record: record, refusal: Refusal(code: "c", detail: "d"))])
        guard case .saved = try storage.save(batch) else {
            throw Broken("a save conflicted with nothing")
        }
        try must(try storage.load().entries.contains(entry), "what was saved is not there")
    }

    /// A store's file with two values, in pages so small that the fuzzer gets somewhere.
    static let sample = Result { try makeSample() }

    private static func makeSample() throws -> [UInt8] {
        let folder = try ScratchFolder()
        let path = folder.file("sample.sqlite")
        let storage = try SQLiteStorage(path: path)
        try save(to: storage, try storage.load())
        storage.close()
        let queue = try DatabaseQueue(path: path)
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM")
        }
        try queue.close()
        return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }
}
