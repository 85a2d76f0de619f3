// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A file system in memory, of 16 MB. Nil where the system lets nobody mount one.
private final class SmallDisk {
    let folder: TemporaryFolder

    init?() throws {
        folder = try TemporaryFolder()
        guard mount("test", folder.path, "tmpfs", 0, "size=16m,mode=700") == 0 else { return nil }
    }

    deinit { umount2(folder.path, Int32(MNT_DETACH)) }

    var ballast: String { folder.file("ballast") }

    func fill() throws {
        let file = try #require(fopen(ballast, "we"))
        setvbuf(file, nil, _IONBF, 0)
        let bytes = [UInt8](repeating: 7, count: 4_096)
        while fwrite(bytes, 1, bytes.count, file) == bytes.count {}
        fclose(file)
    }
}

struct FullDiskTests {
    @Test func `on a full disk what takes away still works, and what adds is refused`() throws {
        guard let disk = try SmallDisk() else { return }
        let reserve = DiskReserve(path: disk.folder.file("reserve"))
        #expect(!reserve.isGivenUp)
        let storage = try SQLiteServerStorage.openForServer(
            disk.folder.file("test.sqlite"), reserve: reserve)
        try storage.makeSampleAccount()
        let value = PropertyListValue.data([UInt8](repeating: 1, count: 200_000))
        func commit(_ key: String, _ value: PropertyListValue?, at time: Int64) throws {
            let push = Sample.push(Sample.record(key, value, at: time))
            _ = try storage.commit([push], rules: Sample.rules(now: 60_000))[0].get()
        }
        for key in ["a", "b", "c"] { try commit(key, value, at: 500) }
        #expect(!storage.isFull)
        try disk.fill()
        #expect(throws: PushRefusal.full) { try commit("d", value, at: 600) }
        #expect(storage.isFull)
        #expect(throws: PushRefusal.full) { try commit("e", .integer(1), at: 700) }
        for (number, key) in ["a", "b", "c"].enumerated() {
            try commit(key, nil, at: 800 + Int64(number))
        }
        #expect(!storage.findRoom())
        #expect(try storage.erase(Sample.account.id, now: 2, by: .operatorLocally))
        unlink(disk.ballast)
        #expect(storage.findRoom())
        #expect(!storage.isFull)
        try storage.makeSampleAccount()
        try commit("d", value, at: 900)
        try storage.close()
    }
}
