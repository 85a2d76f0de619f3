// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

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
        disk.makeRoom()
        #expect(storage.findRoom())
        #expect(!storage.isFull)
        try storage.makeSampleAccount()
        try commit("d", value, at: 900)
        try storage.close()
    }

    @Test func `a server that is started on a full disk has room from its reserve`() throws {
        guard let disk = try SmallDisk() else { return }
        func open() throws -> SQLiteServerStorage {
            try SQLiteServerStorage.openForServer(
                disk.folder.file("test.sqlite"),
                reserve: DiskReserve(path: disk.folder.file("reserve")))
        }
        let first = try open()
        try first.makeSampleAccount()
        try first.close()
        try disk.fill()
        let second = try open()
        #expect(second.isFull)
        #expect(try second.accounts().count == 1)
        #expect(try second.erase(Sample.account.id, now: 2, by: .operatorLocally))
        try second.close()
        try disk.fill()
        #expect(throws: ServerStartError.diskFull(path: disk.folder.file("test.sqlite"))) {
            try open()
        }
    }
}
