// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Dispatch
import Foundation
import Testing
import UbiquityCore

@testable import Ubiquity

struct FileWatcherTests {
    private let folder: TemporaryFolder
    private let signal = Signal()
    private let queue = DispatchQueue(label: "test")

    init() throws { folder = try TemporaryFolder() }

    private func watch(_ file: String) throws -> FileWatcher {
        try FileWatcher(folder: folder.path, file: file, queue: queue) { [signal, queue] in
            dispatchPrecondition(condition: .onQueue(queue))
            signal.fire()
        }
    }

    private func write(_ name: String) throws {
        try Data("x".utf8).write(to: URL(fileURLWithPath: folder.file(name)))
    }

    @Test func `a new file and a replaced file are reported`() async throws {
        let watcher = try watch("account.json")
        try write("account.json")
        try await signal.wait()
        let before = signal.times
        try write("other")
        try FileManager.default.removeItem(atPath: folder.file("account.json"))
        try FileManager.default.moveItem(
            atPath: folder.file("other"), toPath: folder.file("account.json"))
        try await signal.wait(times: before + 1)
        watcher.cancel()
    }

    @Test func `a save by another process is reported`() async throws {
        let path = folder.file("store.sqlite")
        let (one, other) = (try SQLiteStorage(path: path), try SQLiteStorage(path: path))
        let watcher = try watch("store.sqlite-wal")
        for version in Int64(0)..<5 {
            let before = signal.times
            _ = try other.save(SaveBatch(after: version, [try .confirmed("a", .integer(version))]))
            try await signal.wait(times: before + 1)
            #expect(try one.changes(after: version)?.version == version + 1)
        }
        watcher.cancel()
    }

    #if os(Linux)
    @Test(arguments: ["b", "a.sqlite", "ab"])
    func `other files are not told of, nor reads`(_ other: String) async throws {
        try write("a")
        let watcher = try watch("a")
        try write(other)
        _ = try Data(contentsOf: URL(fileURLWithPath: folder.file("a")))
        try await Task.sleep(for: .milliseconds(50))
        queue.sync {}
        #expect(!signal.hasFired)
        watcher.cancel()
    }
    #endif

    @Test func `after a cancel nothing is told any more, and a second cancel does no harm`()
        async throws
    {
        let watcher = try watch("a")
        watcher.cancel()
        watcher.cancel()
        queue.sync {}
        try write("a")
        try await Task.sleep(for: .milliseconds(50))
        #expect(!signal.hasFired)
    }

    #if os(Linux)
    @Test func `where the kernel has no room for a watch, the folder is looked at`() async throws {
        let watch = try FileWatch(
            folder: folder.path, file: "", queue: queue,
            open: {
                errno = EMFILE
                return -1
            }, handler: { [signal] in signal.fire() })
        try await signal.wait()
        watch.cancel()
    }
    #endif

    @Test func `a folder that does not exist is refused`() {
        #expect(throws: SystemError.self) {
            try FileWatcher(folder: folder.file("no"), file: "", queue: queue) {}
        }
    }
}
