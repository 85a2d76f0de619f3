// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import ProcessHarness
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// Tests that folded counts are stored like the rest of a store.
struct FoldedCountStorageTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// The count of one run.
    private func count(_ run: Int, _ times: Int64, _ total: PropertyListValue, at time: Int64)
        -> UbiquityCore.Record
    {
        var record = Sample.record("k", .array([.integer(times), total]), at: time)
        record.key = record.key.part(PartID("c\(run)")!)
        return record
    }

    private func countRuns(_ runs: ClosedRange<Int>, in storage: any ServerStorage) throws {
        for run in runs {
            try storage.commit(Sample.push(count(run, 1, .integer(1), at: Int64(run))))
        }
    }

    private func listed(in storage: any ServerStorage) throws -> [String: PropertyListValue] {
        guard case .changes(let records, _, _, _) = try storage.read(Sample.store, since: nil)
        else { return [:] }
        return try records.map { try $0.record() }
            .reduce(into: [:]) { $0["\($1.key.part!)"] = $1.content.value }
    }

    private func total(in storage: any ServerStorage) throws -> Double {
        try listed(in: storage).values.reduce(0) { sum, value in
            guard case .array(let parts) = value else { return .nan }
            return switch parts[1] {
            case .integer(let total): sum + Double(total)
            case .real(let total): sum + total
            default: .nan
            }
        }
    }

    @Test(arguments: Backend.allCases)
    func `however many runs have counted, few parts are listed`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try countRuns(1...200, in: storage)
        #expect(try listed(in: storage).count <= 62)
        #expect(try total(in: storage) == 200)
    }

    @Test(arguments: Backend.allCases)
    func `what a folded run goes on to count is added once`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try countRuns(1...100, in: storage)
        for _ in 0..<2 {
            try storage.commit(Sample.push(count(3, 2, .real(6.5), at: 300)))
            #expect(try total(in: storage) == 105.5)
        }
        try storage.commit(Sample.push(count(3, 1, .integer(1), at: 3)))
        #expect(try total(in: storage) == 105.5)
    }

    @Test(arguments: Backend.allCases)
    func `a removal of a folded run takes what its author had seen`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try countRuns(1...100, in: storage)
        try storage.commit(Sample.push(count(3, 2, .integer(11), at: 300)))
        var removal = count(3, 1, .integer(-1), at: 301)
        removal.key = removal.key.part(PartID("c-3")!)
        for _ in 0..<2 {
            try storage.commit(Sample.push(removal))
            #expect(try total(in: storage) == 109)
        }
    }

    @Test(arguments: Backend.allCases)
    func `what was folded longest ago is forgotten, and what it may be is refused`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try countRuns(1...100, in: storage)
        let rule = CompactionRule(
            retentionMilliseconds: 1_000, liveMilliseconds: 0, tombstonesMax: 0)
        let push = Sample.push(count(3, 1, .integer(1), at: 3))
        #expect(try storage.commit(push)?.foldedCount ?? 0 > 30)
        let keepsAll = CompactionRule(
            retentionMilliseconds: 1_000, liveMilliseconds: 1_000, tombstonesMax: 9_999)
        // The second time there is nothing to do.
        for _ in 0..<2 {
            let count = try storage.compact(keepsAll, folded: rule, in: Sample.store, now: 1_000)
            #expect(count == 0)
        }
        let commit = try storage.commit(push)
        #expect(commit?.results == [.refused(.olderThanCompacted)])
        #expect(commit?.foldedCount == 0)
        #expect(try total(in: storage) == 100)
    }

    @Test(arguments: Backend.allCases)
    func `a fold, and what is removed of it, is later than an earlier deletion of it`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("k", .integer(1), at: 1)))
        // Nobody but the server writes these: they are answered as deleted.
        let parts = [PartID.fold, PartID("c-+")!]
        for part in parts {
            var write = Sample.record("k", .array([.integer(1), .integer(1)]), at: 50_000)
            write.key = write.key.part(part)
            try storage.commit(Sample.push(write))
        }
        let deleted = try records(in: storage)
        try countRuns(1...100, in: storage)
        var removal = count(3, 1, .integer(-1), at: 301)
        removal.key = removal.key.part(PartID("c-3")!)
        try storage.commit(Sample.push(removal))
        let now = try records(in: storage)
        for part in parts {
            let key = try Key("k").part(part)
            let old = try #require(deleted[key])
            let new = try #require(now[key])
            #expect(old.content == .deleted && new.content != .deleted)
            #expect(new.stamp > old.stamp)
        }
    }

    /// With deletions.
    private func records(in storage: any ServerStorage) throws -> [Key: UbiquityCore.Record] {
        guard
            case .changes(let records, _, _, _) =
                try storage.read(Sample.store, since: Sample.position(1))
        else { throw Trouble("another history") }
        return try records.map { try $0.record() }.reduce(into: [:]) { $0[$1.key] = $1 }
    }

    @Test func `a server that starts again adds what comes late once`() throws {
        let path = folder.file("test.sqlite")
        let first = try SQLiteServerStorage.openForServer(path)
        try first.makeSampleAccount()
        try countRuns(1...100, in: first)
        let before = try listed(in: first)
        try first.close()
        for _ in 0..<2 {
            let storage = try SQLiteServerStorage.openForServer(path)
            try storage.commit(Sample.push(count(3, 2, .integer(11), at: 300)), epoch: 8)
            #expect(try total(in: storage) == 110)
            #expect(try listed(in: storage).keys == before.keys)
            try storage.close()
        }
    }

    @Test func `an account that is erased leaves nothing of it`() throws {
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        try countRuns(1...100, in: storage)
        func rows() throws -> Int? {
            try storage.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM folded") }
        }
        #expect(try rows() ?? 0 > 30)
        _ = try storage.erase(Sample.account.id, now: 1, by: .operatorLocally)
        #expect(try !storage.eraseRest(for: 60_000))
        #expect(try rows() == 0)
    }
}
