// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// A store's state in its file, and what the writer remembers of it.
struct StoreHeadTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.file("test.sqlite")
    }

    private func open() throws -> SQLiteServerStorage {
        let storage = try SQLiteServerStorage.openForServer(path)
        if try storage.accounts().isEmpty { try storage.makeSampleAccount() }
        return storage
    }

    @Test func `a state comes back from its head, whatever is in it`() throws {
        var generator = SystemRandomNumberGenerator()
        for number in 0..<200 {
            func bits() -> UInt64 { UInt64.random(in: 0 ... .max >> UInt64.random(in: 0..<64)) }
            func count() -> Int64 { Int64.random(in: 0...1 << Int64.random(in: 0...61)) }
            func time() -> HybridTimestamp { HybridTimestamp(rawValue: bits()) }
            let spans = (0..<Int64.random(in: 0...20)).map {
                Lineage.Span(firstRevision: $0 + 1, epoch: bits())
            }
            var times: [DeviceID: HybridTimestamp] = [:]
            for _ in 0..<number % 50 { times[DeviceID(rawValue: generator.next())] = time() }
            let state = StoreState(
                lineage: Lineage(spans: spans, revision: count(), compactedRevision: count()),
                usage: Usage(bytes: Int(count()), keys: Int(count()), parts: Int(count())),
                newest: time(), newestCompacted: time(), deletions: Int(count()),
                accepted: VersionVector(times: times, floor: time()), horizon: time(),
                folded: Int(count()),
                foldsCompacted: FoldHorizon(timestamp: time(), revision: count()),
                history: HistoryState(
                    bytes: Int(count()),
                    floor: RecordVersion.Moment(revision: count(), milliseconds: count()),
                    oldest: count()))
            let value = Data(StoreHead.value(state, spanRows: 0))
            func read(_ value: Data) throws -> StoreState {
                try StoreHead.state(
                    value, newest: state.newest, revision: state.lineage.revision
                ).state
            }
            #expect(try read(value) == state)
            #expect(throws: StorageError.unreadable) { try read(value.dropLast()) }
            // Anything may come of damage, except the end of the program.
            for _ in 0..<20 {
                var damaged = value
                damaged[.random(in: 0..<damaged.count)] = .random(in: 0...255)
                _ = try? read(damaged)
            }
        }
    }

    @Test func `the newest versions come back from a head, whatever is in them`() throws {
        for round in 0..<100 {
            func bits() -> UInt64 { UInt64.random(in: 0 ... .max >> UInt64.random(in: 0..<64)) }
            func number() -> Int64 { Int64.random(in: 0...1 << Int64.random(in: 0...61)) }
            func stamp(digest: UInt64 = 0) -> Stamp {
                Stamp(
                    HybridTimestamp(rawValue: bits()), DeviceID(rawValue: bits()), digest: digest)
            }
            func data() -> Data {
                Data((0..<Int.random(in: 0...30)).map { _ in .random(in: 0...255) })
            }
            let rows = (0..<round % 12).map { _ in
                VersionRow(
                    StoredRecord(
                        key: data(), stamp: stamp(digest: bits()),
                        value: Bool.random() ? nil : data()),
                    // A server's clock may have said anything.
                    came: RecordVersion.Moment(
                        revision: number(), milliseconds: Bool.random() ? number() : -number()),
                    replaced: RecordVersion.Moment(revision: number(), milliseconds: number()),
                    by: stamp())
            }
            var recent = VersionPack()
            let count = rows.prefix { recent.append($0) }.count
            #expect(try recent.rows() == Array(rows.prefix(count)))
            #expect(count == rows.count || recent.bytes.count > 500)
            let value = Data(StoreHead.value(StoreState(), spanRows: 0) + recent.bytes)
            func read(_ value: Data) throws -> VersionPack {
                try StoreHead.state(value, newest: .zero, revision: 0).recent
            }
            #expect(try read(value) == recent)
            guard round % 12 > 0 else { continue }
            #expect(throws: StorageError.unreadable) { try read(value.dropLast()) }
            for _ in 0..<20 {
                var damaged = value
                damaged[.random(in: 0..<damaged.count)] = .random(in: 0...255)
                _ = try? read(damaged)
            }
        }
    }

    @Test func `every field of a state is there after a restart`() throws {
        let storage = try open()
        try storage.fillForEveryField()
        let before = try storage.state()
        #expect(before.lineage.spans.count > 20)
        #expect(before.accepted.times.count > 1)
        #expect(before.folded > 0)
        #expect(before.deletions > 0)
        #expect(before.newestCompacted > .zero)
        #expect(before.history.bytes > 0)
        try storage.close()
        let next = try open()
        #expect(try next.state() == before)
        // The oldest spans are rows, so that the head stays small.
        let rows = try next.database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM span") }
        #expect(rows ?? 0 > before.lineage.spans.count - 10)
        for span in before.lineage.spans {
            let position = Position(epoch: span.epoch, revision: span.firstRevision)
            #expect(try next.read(Sample.store, since: position) != .otherHistory)
        }
        try next.close()
    }

    @Test func `what a batch did that failed is not remembered`() throws {
        let storage = try open()
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        let before = try storage.state()
        try storage.database.writeWithoutTransaction { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER fails BEFORE INSERT ON record WHEN new.key = x'66'
                    BEGIN SELECT raise(FAIL, 'no'); END
                    """)
        }
        let batch = [
            Sample.push(Sample.record("b", .integer(1), at: 600)),
            Sample.push(Sample.record("f", .integer(1), at: 600)),
        ]
        #expect(throws: StorageError.self) { try storage.commit(batch, rules: Sample.rules()) }
        #expect(try storage.state() == before)
        let next = try storage.commit(Sample.push(Sample.record("c", .integer(1), at: 700)))
        #expect(next?.position.revision == 2)
        #expect(try storage.keys(since: nil) == ["a", "c"])
        try storage.close()
    }

    @Test func `a device that another process removed pushes no more`() throws {
        let storage = try open()
        try storage.addCode("code")
        let rights = try storage.redeem(
            SecretHash(of: "code"), by: Sample.newDevice(), now: 1_000
        ).device.rights
        func commit(_ value: Int64) throws {
            var push = Sample.push(Sample.record("a", .integer(value), at: 500 + value))
            push.rights = rights
            _ = try storage.commit([push], rules: Sample.rules())[0].get()
        }
        try commit(1)
        try commit(2)
        let other = try SQLiteServerStorage(ServerDatabase.openQueue(path))
        #expect(try !other.revoke(rights.reference, now: 1_000, by: .operatorLocally).isEmpty)
        #expect(throws: PushRefusal.notAllowed(.credentialInvalid)) { try commit(3) }
        try other.close()
        try storage.close()
    }

    @Test func `of an account that another process erased nothing is remembered`() throws {
        let storage = try open()
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        let other = try SQLiteServerStorage(ServerDatabase.openQueue(path))
        #expect(try other.erase(Sample.account.id, now: 2, by: .operatorLocally))
        let results = try storage.commit(
            [Sample.push(Sample.record("b", .integer(1), at: 600))], rules: Sample.rules())
        #expect(results == [.failure(.noSuchAccount)])
        try other.close()
        try storage.close()
    }

    @Test func `what is known without the disk is what the disk has`() throws {
        let storage = try open()
        let disk = try SQLiteServerStorage(ServerDatabase.openQueue(path))
        let names = ["one", "two"]
        var positions: [Position] = []
        var known = 0
        for step in 1...600 {
            let store = StoreReference(
                account: Sample.account.id, identifier: try StoreIdentifier(names.randomElement()!))
            let time = Int64(step)
            let rule = CompactionRule(
                retentionMilliseconds: 20, liveMilliseconds: 0, tombstonesMax: 100)
            switch Int.random(in: 0..<40) {
            case 0:
                _ = try storage.erase(Sample.account.id, now: 1, by: .operatorLocally)
                try storage.makeSampleAccount()
            case 1...4:
                try storage.addRunningTime(10)
                _ = try storage.compact(rule, in: store, now: 9_000)
            case 5...20: _ = try storage.read(store, since: positions.randomElement())
            default:
                let key = "key \(Int.random(in: 0..<5))"
                let write = Sample.record(key, Bool.random() ? nil : .integer(1), at: time)
                let results = try storage.commit(
                    [Sample.push(write, to: store)], rules: Sample.rules(epoch: UInt64(step / 50)))
                positions.append(try results[0].get().position)
            }
            for name in names {
                let store = StoreReference(
                    account: Sample.account.id, identifier: try StoreIdentifier(name))
                for position in positions.suffix(5) {
                    guard let read = storage.unchanged(store, since: position, sealedWith: nil)
                    else { continue }
                    known += 1
                    disk.positions.forgetAll()
                    #expect(try disk.read(store, since: position) == read)
                }
            }
        }
        #expect(known > 100)
        try disk.close()
        try storage.close()
    }

    /// A reader that began before a commit ends after it.
    @Test func `a reader does not bring back an older position`() throws {
        let positions = KnownPositions()
        func state(_ revision: Int64) -> StoreState {
            var state = StoreState()
            state.lineage = Lineage(
                spans: [Lineage.Span(firstRevision: 1, epoch: 7)], revision: revision)
            return state
        }
        func revision() -> Int64? { positions.head(of: Sample.store)?.position.revision }
        let began = positions.generation
        positions.note(state(2), of: Sample.store)
        positions.note(state(1), of: Sample.store, since: began)
        #expect(revision() == 2)
        positions.note(state(3), of: Sample.store, since: began)
        #expect(revision() == 3)
        positions.forget(Sample.store)
        positions.note(state(3), of: Sample.store, since: began)
        #expect(revision() == nil)
        positions.note(state(3), of: Sample.store, since: positions.generation)
        #expect(revision() == 3)
        positions.forgetAll()
        #expect(revision() == nil)
        // Nor where what a commit noted was forgotten for others.
        let small = KnownPositions(bytesMax: 1_000)
        let before = small.generation
        small.note(state(2), of: Sample.store)
        for number in 0..<100 {
            let other = StoreReference(
                account: AccountID(rawValue: UInt64(number)), identifier: Sample.store.identifier)
            small.note(state(1), of: other)
        }
        #expect(small.head(of: Sample.store) == nil)
        small.note(state(1), of: Sample.store, since: before)
        #expect(small.head(of: Sample.store) == nil)
    }

    @Test func `the log begins anew under load, and keeps nothing back`() throws {
        let storage = try open()
        var written = 0
        // A file that only grew would have all that was written.
        while written < 10_000_000 || storage.logBytes > written / 3 {
            written += 100_000
            try #require(written < 2_000_000_000)
            let key = "key \(written / 100_000 % 8)"
            let time = 500 + Int64(written / 100_000)
            let push = Sample.push(Sample.record(key, .large(time), at: time))
            _ = try storage.commit([push], rules: Sample.rules(now: 60_000))[0].get()
        }
        #expect(try storage.keys(since: nil)?.count == 8)
        // However much is in it, the log is empty some seconds later.
        try storage.emptyLogSoon()
        try storage.close()
        let next = try open()
        #expect(try next.keys(since: nil)?.count == 8)
        try next.close()
    }

    @Test func `a log that was written anew since the last time of asking need not be emptied`()
        throws
    {
        let storage = try open()
        let checkpointer = try #require(storage.checkpointer)
        var time: Int64 = 500
        func commit(count: Int) throws {
            for _ in 0..<count {
                time += 1
                let push = Sample.push(Sample.record("key \(time % 8)", .large(time), at: time))
                _ = try storage.commit([push], rules: Sample.rules(now: 60_000))[0].get()
            }
        }
        func emptying() -> Checkpointer.Emptying {
            checkpointer.emptying(fileBytes: storage.logBytes)
        }
        try commit(count: 10)
        #expect(emptying() != .needless)
        // How soon a log begins anew depends on the disk.
        var count = 100
        repeat {
            try commit(count: count)
            count *= 2
            try #require(count < 10_000)
        } while emptying() != .needless
        // Not twice for the same.
        #expect(emptying() != .needless)
        try storage.close()
    }

    @Test func `a table forgets what was not used for long, and nothing sooner`() {
        var table = RecentTable<Int, Int>(bytesMax: 100_000)
        for number in 0..<10_000 {
            table.set(number, -number, bytes: 100)
            #expect(table.value(number) == -number)
            #expect(table.value(0) == 0)
            if number > 100 { #expect(table.value(number - 100) == 100 - number) }
        }
        #expect(table.value(1) == nil)
        #expect((0..<10_000).filter { table.value($0) != nil }.count < 1_000)
        table.remove(0)
        #expect(table.value(0) == nil)
        table.removeAll { $0 == -9_999 }
        #expect(table.value(9_999) == nil && table.value(9_998) == -9_998)
        table.removeAll()
        #expect(table.value(9_998) == nil)
    }
}

extension SQLiteServerStorage {
    /// The state of the sample's store as stored.
    func state() throws -> StoreState {
        try database.read { try #require(try SQLiteStore.fetch(Sample.store, $0)).state }
    }

    /// Empties the log, as housekeeping does, however much is in it.
    func emptyLogSoon() throws {
        var uptime: Int64 = 10_000
        while logBytes > 0 {
            try emptyLog(pacedAt: uptime)
            uptime += 250
            try #require(uptime < 10_000_000)
            Thread.sleep(forTimeInterval: 0.01)
        }
    }

    /// Commits to the sample's store in many runs, until no field of its state is empty.
    func fillForEveryField() throws {
        for run in 1...30 {
            let time = 500 + Int64(run)
            var count = Sample.record("k", .array([.integer(1), .integer(1)]), at: time)
            count.key = count.key.part(PartID("c\(run)")!)
            try commit(Sample.push(count), epoch: UInt64(run))
            let device = DeviceID(rawValue: UInt64(run % 3 + 1))
            try commit(
                Sample.push(Sample.record("key \(run)", .integer(1), at: time, by: device)),
                epoch: UInt64(run))
        }
        for run in 31...100 {
            var count = Sample.record("k", .array([.integer(1), .integer(1)]), at: 540)
            count.key = count.key.part(PartID("c\(run)")!)
            try commit(Sample.push(count), epoch: 30)
        }
        for (number, time) in [Int64(600), 700].enumerated() {
            try commit(Sample.push(Sample.record("key \(number + 1)", nil, at: time)), epoch: 30)
        }
        try commit(Sample.push(Sample.record("last", .integer(1), at: 800)), epoch: 30)
        let rule = CompactionRule(
            retentionMilliseconds: 150, liveMilliseconds: 0, tombstonesMax: 10_000)
        try addRunningTime(1_000)
        _ = try compact(rule, in: Sample.store, now: 2_000)
    }
}

extension PropertyListValue {
    /// A value of 100,000 bytes, another for each number: SQLite does not write what stays the same.
    static func large(_ number: Int64) -> PropertyListValue {
        .data([UInt8](repeating: UInt8(number % 251), count: 100_000))
    }
}
