// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import Foundation
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

extension AccountSuites {
    /// Looks for traces of rows that SQLite moved about before they were removed.
    @Suite struct ScrubbingTests {
        private static let accountsCount = 8
        private static let writesCount = 6_000
        private static let sizes = [5, 30, 100, 400, 1_500, 9_000]

        private func account(_ number: Int) -> Account {
            Account(
                id: AccountID(rawValue: UInt64(number)),
                name: AccountName("secret-\(number)-name")!,
                createdMilliseconds: 1)
        }

        private func store(_ number: Int) throws -> StoreReference {
            StoreReference(
                account: account(number).id,
                identifier: try StoreIdentifier("secret-\(number)-store"))
        }

        /// Writes of all accounts in turn, of all sizes and in any order, so that pages of the file
        /// split and merge; the same each time.
        private func pushes() throws -> [PendingPush] {
            var state: UInt64 = 42
            func draw(_ count: Int) -> Int {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return Int((state >> 33) % UInt64(count))
            }
            return try (0..<Self.writesCount).map { number in
                let account = draw(Self.accountsCount)
                let word = "secret-\(account)-"
                let size = Self.sizes[draw(Self.sizes.count)]
                let value = String(repeating: word, count: size / word.utf8.count + 1)
                let record = Sample.record(
                    "\(word)\(draw(400))", draw(5) == 0 ? nil : .string(value),
                    at: 500 + Int64(number))
                return Sample.push(record, to: try store(account))
            }
        }

        /// On a thread of its own: servers of other tests run on those that tests run on.
        @Test func `of erased accounts nothing is left between the rows of the others`()
            async throws
        {
            let threads = BlockingThreads(name: "test", count: 1, waitingMax: 1)
            defer { threads.close() }
            let folder = try TemporaryFolder()
            let left = try await threads.run { try writeAndErase(in: folder) }
            #expect(left == 1)
            #expect(try traces(of: 1..<Self.accountsCount, in: folder).isEmpty)
        }

        /// Without a history, or of a key that it must not keep.
        @Test(arguments: [false, true])
        func `what was deleted is in no file some seconds later, however quiet the server is`(
            hasHistory: Bool
        ) throws {
            let folder = try TemporaryFolder()
            let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
            try storage.createAccount(account(1), accountsMax: 9, by: .operatorLocally)
            func commit(_ value: PropertyListValue?, at time: Int64) throws {
                let record = Sample.record("k", value, at: time)
                let push = PendingPush(
                    store: try store(1),
                    push: Push([try Transaction([record], unkept: hasHistory ? [record.key] : [])]))
                let history = HistoryLimits(milliseconds: hasHistory ? 1_000 : 0)
                _ = try storage.commit([push], rules: Sample.rules(now: 60_000, history: history))
            }
            try commit(.string("hush-hush"), at: 500)
            try commit(nil, at: 600)
            #expect(try !files(with: ["hush-hush"], in: folder).isEmpty)
            try storage.emptyLog(pacedAt: 10_000)
            #expect(try files(with: ["hush-hush"], in: folder).isEmpty)
            try commit(.string("again hush-hush"), at: 700)
            try commit(nil, at: 800)
            try storage.emptyLog(pacedAt: 10_100)
            try storage.emptyLog(pacedAt: 14_000)
            #expect(try files(with: ["hush-hush"], in: folder).isEmpty)
            try storage.close()
        }

        /// The log is not emptied while it is written over, which some of the rounds here are too quiet
        /// for.
        @Test func `what was deleted is in no file some seconds later under load`() throws {
            let folder = try TemporaryFolder()
            let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
            try storage.createAccount(account(1), accountsMax: 9, by: .operatorLocally)
            var time: Int64 = 500
            func commit(_ key: String, _ value: PropertyListValue) throws {
                time += 1
                let record = Sample.record(key, value, at: time)
                let push = PendingPush(
                    store: try store(1), push: Push([try Transaction([record])]))
                let rules = Sample.rules(now: 60_000, history: HistoryLimits(milliseconds: 0))
                _ = try storage.commit([push], rules: rules)[0].get()
            }
            func secret(_ number: Int) -> String { "hush-hush \(number + 100)" }
            // Rows that grew would be moved, and `scrub` alone overwrites what they leave.
            try commit("k", .string(secret(0)))
            for number in 0..<8 { try commit("large \(number)", .large(time)) }
            var uptime: Int64 = 10_000
            for round in 0..<16 {
                let wasEmpty = try files(with: [secret(round)], in: folder).isEmpty
                #expect(wasEmpty == (round > 0))
                for number in 0..<[80, 30, 4, 50][round % 4] {
                    try commit("large \(number % 8)", .large(time))
                }
                try commit("k", .string(secret(round)))
                try commit("k", .string(secret(round + 100)))
                uptime += 3_000
                try storage.emptyLog(pacedAt: uptime)
                guard round > 0 else { continue }
                // It may be emptied after one of the next commits. There are too few of them here to write
                // over it.
                var ticks = 0
                while try !files(with: [secret(round - 1)], in: folder).isEmpty, ticks < 6_000 {
                    Thread.sleep(forTimeInterval: 0.01)
                    ticks += 1
                    guard ticks.isMultiple(of: 50) else { continue }
                    uptime += 10
                    try storage.emptyLog(pacedAt: uptime)
                    try commit("k", .string(secret(round + 100)))
                }
                #expect(try files(with: [secret(round - 1)], in: folder).isEmpty)
            }
            try storage.close()
        }

        /// - Returns: How many stores the account has that is not erased.
        private func writeAndErase(in folder: TemporaryFolder) throws -> Int {
            let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
            for number in 0..<Self.accountsCount {
                try storage.createAccount(account(number), accountsMax: 99, by: .operatorLocally)
            }
            let pushes = try pushes()
            for start in stride(from: 0, to: pushes.count, by: 20) {
                let batch = Array(pushes[start..<min(start + 20, pushes.count)])
                _ = try storage.commit(batch, rules: Sample.rules(now: 60_000))
            }
            for number in 1..<Self.accountsCount {
                _ = try storage.erase(account(number).id, now: 2, by: .operatorLocally)
            }
            try storage.scrub(pacedAt: nil)
            return try storage.stores(of: account(0).id).count
        }

        /// The files in which something of these accounts is.
        private func traces(of accounts: Range<Int>, in folder: TemporaryFolder) throws -> [String]
        {
            try files(with: accounts.map { "secret-\($0)-" }, in: folder)
        }

        private func files(with texts: [String], in folder: TemporaryFolder) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { name in
                let bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file(name)))
                return texts.contains { bytes.range(of: Data($0.utf8)) != nil }
            }
        }

        private func chores(_ storage: SQLiteServerStorage) throws -> [String] {
            try storage.database.read { try String.fetchAll($0, sql: "SELECT name FROM chore") }
        }

        @Test func `scrubbing that a killed process did not reach is done by the next`() throws {
            let folder = try TemporaryFolder()
            let path = folder.file("test.sqlite")
            let storage = try SQLiteServerStorage.openForServer(path)
            try storage.createAccount(account(1), accountsMax: 9, by: .operatorLocally)
            _ = try storage.commit(
                [Sample.push(Sample.record("a", .integer(1), at: 500), to: try store(1))],
                rules: Sample.rules())
            #expect(try storage.erase(account(1).id, now: 2, by: .operatorLocally))
            let next = try SQLiteServerStorage.openForServer(path)
            #expect(try chores(next) == ["scrub"])
            try next.scrub(pacedAt: 0)
            #expect(try chores(next) == ["scrub"])
            #expect(try !next.eraseRest(for: 1_000))
            try next.scrub(pacedAt: 0)
            #expect(try chores(next) == [])
            #expect(try traces(of: 1..<2, in: folder).isEmpty)
        }

        @Test func `frequent erasing does not make a server scrub all the time`() throws {
            let folder = try TemporaryFolder()
            let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
            for number in 1...2 {
                try storage.createAccount(account(number), accountsMax: 9, by: .operatorLocally)
            }
            #expect(try storage.erase(account(1).id, now: 2, by: .operatorLocally))
            _ = try storage.eraseRest(for: 1_000)
            try storage.scrub(pacedAt: 1_000)
            #expect(try chores(storage) == [])
            #expect(try storage.erase(account(2).id, now: 2, by: .operatorLocally))
            _ = try storage.eraseRest(for: 1_000)
            try storage.scrub(pacedAt: 1_001)
            #expect(try chores(storage) == ["scrub"])
            try storage.scrub(pacedAt: 10_000_000)
            #expect(try chores(storage) == [])
        }

        @Test func `what a large account held is erased in slices, and others push between two`()
            throws
        {
            let folder = try TemporaryFolder()
            let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
            for number in 1...2 {
                try storage.createAccount(account(number), accountsMax: 9, by: .operatorLocally)
            }
            for batch in 0..<8 {
                let writes = (0..<500).map {
                    Sample.record(
                        "secret-1-\(batch * 500 + $0)", $0.isMultiple(of: 5) ? nil : .integer(1),
                        at: 500)
                }
                let push = Push([try Transaction(writes)])
                let rules = CommitRules(
                    admission: PushAdmission(limits: largeLimits, now: 60_000), run: 7,
                    storesPerAccountMax: 9)
                _ = try storage.commit([PendingPush(store: store(1), push: push)], rules: rules)
            }
            #expect(try storage.erase(account(1).id, now: 2, by: .operatorLocally))
            #expect(try storage.stores(of: account(1).id).isEmpty)
            var slices = 0
            while try storage.eraseRest(for: 0) {
                slices += 1
                let push = Sample.push(
                    Sample.record("a", .integer(1), at: 500 + Int64(slices)), to: try store(2))
                _ = try storage.commit([push], rules: Sample.rules(now: 60_000))
            }
            #expect(slices >= 4_000 / 16)
            let counts = try storage.database.read { db in
                try ["record", "span", "folded", "erased"].map {
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)")
                }
            }
            // The other account's record, and the head of its store.
            #expect(counts == [2, 0, 0, 0])
            #expect(try storage.stores(of: account(2).id).map(\.usage.keys) == [1])
            try storage.close()
        }

        private var largeLimits: StoreLimits {
            var limits = StoreLimits()
            limits.keysMax = 10_000
            return limits
        }

        @Test func `a backup contains nothing that is still being erased`() throws {
            let folder = try TemporaryFolder()
            try FileManager.default.createDirectory(
                atPath: folder.file("data"), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            let storage = try SQLiteServerStorage.openForServer(folder.file("data/ubiquity.sqlite"))
            try storage.createAccount(account(1), accountsMax: 9, by: .operatorLocally)
            let push = Sample.push(
                Sample.record("a", .string("secret-1-value"), at: 500), to: try store(1))
            _ = try storage.commit([push], rules: Sample.rules())
            #expect(try storage.erase(account(1).id, now: 2, by: .operatorLocally))
            let copy = try Backup(
                of: folder.file("data"), to: folder.file("copy"), replaces: false, secondsMax: 60)
            #expect(copy.accounts == 0)
            let bytes = try Data(contentsOf: URL(fileURLWithPath: copy.path))
            #expect(bytes.range(of: Data("secret-1-".utf8)) == nil)
            let found = try DatabaseQueue(path: copy.path).read {
                try Int.fetchOne($0, sql: "SELECT count(*) FROM record")
            }
            #expect(found == 0)
            try storage.close()
        }

        @Test func `a large database is written anew when nobody has pushed for a while`() throws {
            let folder = try TemporaryFolder()
            let path = folder.file("test.sqlite")
            let storage = try SQLiteServerStorage.openForServer(path)
            for number in 1...2 {
                try storage.createAccount(account(number), accountsMax: 9, by: .operatorLocally)
            }
            // As much data as many accounts have.
            try storage.database.write { db in
                try db.execute(
                    sql: "CREATE TABLE ballast (a); INSERT INTO ballast VALUES (zeroblob(20000000))"
                )
            }
            try storage.emptyLogSoon()
            #expect(try storage.erase(account(1).id, now: 2, by: .operatorLocally))
            for uptime in stride(from: Int64(20_000), to: 600_000, by: 100_000) {
                try storage.scrub(pacedAt: uptime)
            }
            #expect(try chores(storage) == ["scrub"])
            let push = Sample.push(Sample.record("a", .integer(1), at: 500), to: try store(2))
            _ = try storage.commit([push], rules: Sample.rules())
            try storage.scrub(pacedAt: 5_000_000)
            try storage.scrub(pacedAt: 5_500_000)
            #expect(try chores(storage) == ["scrub"])
            try storage.scrub(pacedAt: 90_000_000)
            #expect(try chores(storage) == [])
            try storage.close()
        }
    }
}
