// SPDX-License-Identifier: Apache-2.0

internal import ClientTestSupport
internal import GRDB
internal import Testing
internal import UbiquityCore

@testable internal import UbiquityServer

/// The history's part of the contract of ``ServerStorage``, over every backend.
@Suite struct HistoryStorageTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(arguments: Backend.allCases)
    func `what is replaced and deleted stays in the history`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)), now: 1_000)
        try storage.commit(Sample.push(Sample.record("a", .string("x"), at: 600)), now: 2_000)
        try storage.commit(Sample.push(Sample.record("b", .boolean(true), at: 610)), now: 2_500)
        try storage.commit(Sample.push(Sample.record("a", nil, at: 700)), now: 3_000)
        #expect(
            try storage.listed() == [
                "a deleted came 4@3000 current", "b true came 3@2500 current",
                "a x came 2@2000 replaced 4@3000 by 700", "a 1 came 1@1000 replaced 2@2000 by 600",
            ])
        #expect(try storage.listed(of: try Key("b")) == ["b true came 3@2500 current"])
        #expect(try storage.snapshot(at: .revision(1)) == ["a 1"])
        #expect(try storage.snapshot(at: .revision(3)) == ["a x", "b true"])
        #expect(try storage.snapshot(at: .revision(4)) == ["b true"])
        #expect(try storage.snapshot(at: .revision(0)) == [])
        #expect(try storage.snapshot(at: .milliseconds(2_400)) == ["a x"])
        #expect(try storage.snapshot(at: .milliseconds(999)) == [])
    }

    @Test(arguments: Backend.allCases)
    func `pushes of one group that replace one another are all in the history`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("a", .integer(0), at: 400)))
        _ = try storage.commit(
            [
                Sample.push(Sample.record("a", .integer(1), at: 500)),
                Sample.push(Sample.record("a", .integer(2), at: 600)),
                Sample.push(
                    Sample.record("a", .integer(3), at: 700),
                    Sample.record("b", .integer(1), at: 700)),
                Sample.push(Sample.record("b", nil, at: 800)),
            ], rules: Sample.rules(now: 2_000))
        #expect(
            try storage.listed() == [
                "b deleted came 5@2000 current", "a 3 came 4@2000 current",
                "b 1 came 4@2000 replaced 5@2000 by 800", "a 2 came 3@2000 replaced 4@2000 by 700",
                "a 1 came 2@2000 replaced 3@2000 by 600", "a 0 came 1@1000 replaced 2@2000 by 500",
            ])
        for revision in 1...4 {
            let values = try storage.snapshot(at: .revision(Int64(revision)))
            #expect(values.contains("a \(revision - 1)"))
        }
    }

    @Test(arguments: Backend.allCases)
    func `writes of one push that replace one another are in the history`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("a", .integer(0), at: 400)))
        let push = Push([
            try Transaction([Sample.record("a", .integer(1), at: 500)]),
            try Transaction([Sample.record("a", .integer(2), at: 600)]),
        ])
        try storage.commit(PendingPush(store: Sample.store, push: push), now: 2_000)
        #expect(
            try storage.listed() == [
                "a 2 came 2@2000 current", "a 1 came 2@2000 replaced 2@2000 by 600",
                "a 0 came 1@1000 replaced 2@2000 by 500",
            ])
        #expect(try storage.snapshot(at: .revision(2)) == ["a 2"])
    }

    @Test(arguments: Backend.allCases)
    func `a write that loses is in the history, once`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        try storage.commit(Sample.push(Sample.record("a", .integer(2), at: 600)))
        func late(
            _ value: Int64, at time: Int64, by device: UInt64
        ) -> PendingPush {
            Sample.push(
                Sample.record("a", .integer(value), at: time, by: DeviceID(rawValue: device)))
        }
        let first = late(1, at: 500, by: 2)
        for now: Int64 in [2_000, 3_000] { try storage.commit(first, now: now) }
        _ = try storage.commit([first, first], rules: Sample.rules(now: 4_000))
        let expected = ["a 2 came 1@1000 current", "a 1 came 1@2000 lost 1@2000 by 600"]
        #expect(try storage.listed() == expected)
        #expect(try storage.snapshot(at: .revision(1)) == ["a 2"])
        // Twice in one group, and a repetition of one that was replaced.
        let other = late(0, at: 400, by: 3)
        let next = Sample.push(Sample.record("a", .integer(3), at: 700))
        let again = Sample.push(Sample.record("a", .integer(2), at: 600))
        _ = try storage.commit([other, other, next, again], rules: Sample.rules(now: 5_000))
        #expect(
            try storage.listed() == [
                "a 3 came 2@5000 current", "a 2 came 1@1000 replaced 2@5000 by 700",
                "a 1 came 1@2000 lost 1@2000 by 600", "a 0 came 1@5000 lost 1@5000 by 600",
            ])
    }

    @Test(arguments: Backend.allCases)
    func `what must not be kept is not`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        func secret(_ value: Int64, at time: Int64) throws -> PendingPush {
            let record = Sample.record("pin", .integer(value), at: time)
            let push = Push([try Transaction([record], unkept: [record.key])])
            return PendingPush(store: Sample.store, push: push)
        }
        let open = Sample.push(Sample.record("pin", .integer(1), at: 500))
        try storage.commit(open)
        try storage.commit(Sample.push(Sample.record("pin", .integer(2), at: 600)))
        try storage.commit(try secret(3, at: 700), now: 2_000)
        #expect(try storage.listed() == [])
        #expect(try storage.snapshot(at: .revision(2)) == ["pin forgotten"])
        #expect(try storage.snapshot(at: .revision(3)) == ["pin 3"])
        // In one group, and with a write after them that may be kept.
        _ = try storage.commit(
            [
                try secret(4, at: 800), try secret(5, at: 900),
                Sample.push(Sample.record("pin", .integer(6), at: 1_000)),
                Sample.push(Sample.record("pin", .integer(7), at: 1_100)),
            ], rules: Sample.rules(now: 3_000))
        #expect(
            try storage.listed() == [
                "pin 7 came 7@3000 current", "pin 6 came 6@3000 replaced 7@3000 by 1100",
            ])
        for revision: Int64 in 1...5 {
            #expect(try storage.snapshot(at: .revision(revision)) == ["pin forgotten"])
        }
        #expect(try storage.snapshot(at: .revision(6)) == ["pin 6"])
        // One that loses is not kept either, nor is a part.
        var part = Sample.record("pin", .integer(8), at: 1_200)
        part.key = part.key.part(PartID("d8")!)
        try storage.commit(try secret(0, at: 1), now: 4_000)
        try storage.commit(Sample.push(part), now: 5_000)
        try storage.commit(try secret(9, at: 1_300), now: 6_000)
        #expect(try storage.listed() == ["pin 8 came 8@5000 current"])
    }

    @Test(arguments: Backend.allCases)
    func `a group reads a history once for all that must not be kept, and says what it read`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let rules = Sample.rules(now: 2_000, history: HistoryLimits(versionsMax: 1_000))
        for number: Int64 in 1...40 {
            let writes = (0..<100).map { Sample.record("key \($0)", .integer(number), at: number) }
            let push = PendingPush(store: Sample.store, push: Push([try Transaction(writes)]))
            _ = try storage.commit([push], rules: rules)
        }
        let pushes = try (0..<16).map { number in
            let record = Sample.record("key \(95 + number)", .integer(0), at: 600)
            let push = Push([try Transaction([record], unkept: [record.key])])
            return PendingPush(store: Sample.store, push: push)
        }
        let after = Sample.push(Sample.record("key 95", .integer(1), at: 700))
        let last = Sample.push(Sample.record("key 95", .integer(2), at: 800))
        let searched = try storage.commit(pushes + [after, last], rules: rules)
            .map { try $0.get().searchedBytes }
        // The others have an index of keys.
        #expect(backend == .sqlite ? (50_000..<500_000).contains(searched[0]) : searched[0] == 0)
        #expect(searched.dropFirst().allSatisfy { $0 == 0 })
        let rule = HistoryRule(HistoryLimits(versionsMax: 1_000), now: 2_000)
        let counts = Dictionary(grouping: try storage.listed(rule)) {
            Int($0.split(separator: " ")[1])
        }
        #expect(counts.count == 96 && counts[95]?.count == 2)
        #expect((0..<95).allSatisfy { counts[$0]?.count == 40 })
        #expect(try storage.commit(last)?.searchedBytes == 0)
    }

    @Test(arguments: Backend.allCases)
    func `a history that grows too large loses its oldest versions, and says so`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let limits = HistoryLimits(versionsMax: 1_000, bytesMax: 40_000)
        var pruned = false
        for number: Int64 in 1...60 {
            let value = PropertyListValue.data([UInt8](repeating: UInt8(number), count: 1_000))
            let push = Sample.push(Sample.record("key \(number % 20)", value, at: 500 + number))
            let rules = Sample.rules(now: 1_000 * number, history: limits)
            _ = try storage.commit([push], rules: rules)
            let state = try storage.historyState()
            // A push adds a version, which the next one prunes.
            let bytesMax = limits.bytesMax + 1_300
            #expect(state.bytes <= bytesMax)
            let rule = HistoryRule(limits, now: 1_000 * number)
            var bytes = 0
            _ = try storage.versions(of: Sample.store, key: nil, currentOnly: false) { _, lines in
                bytes = lines.filter { $0.ended != nil }.reduce(0) { $0 + $1.bytes }
                return []
            }
            // Stored values are a little longer than they count.
            #expect(bytes <= bytesMax + bytesMax / 64)
            if state.floor.revision > 0 {
                pruned = true
                let forgotten = HistoryForgotten(knownSince: state.floor.milliseconds)
                #expect(throws: forgotten) {
                    try storage.snapshot(at: .revision(state.floor.revision - 1), rule)
                }
                #expect(throws: forgotten) {
                    try storage.snapshot(at: .milliseconds(state.floor.milliseconds - 1), rule)
                }
                let then = try storage.snapshot(at: .milliseconds(state.floor.milliseconds), rule)
                #expect(then.count == 20)
            }
        }
        #expect(pruned)
    }

    @Test(arguments: Backend.allCases)
    func `a push that is refused leaves a pruned history whole`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        for number: Int64 in 1...60 {
            try storage.commit(Sample.push(Sample.record("a", .integer(number), at: 500 + number)))
        }
        let limits = HistoryLimits(versionsMax: 1_000, bytesMax: 8_000)
        let (rule, rules) = (
            HistoryRule(limits, now: 2_000), Sample.rules(now: 2_000, history: limits)
        )
        // It is young, but too large.
        #expect(try storage.storesToPrune(rule) == [Sample.store])
        let ahead = Sample.push(Sample.record("a", .integer(0), at: 10_000_000))
        let next = Sample.push(Sample.record("a", .integer(61), at: 600))
        guard case .failure(.clockAhead) = try storage.commit([ahead], rules: rules)[0] else {
            Issue.record("It was not refused.")
            return
        }
        #expect(try storage.commit([next], rules: rules)[0].get().position.revision == 61)
        #expect(try storage.storesToPrune(rule) == [])
        #expect(try storage.pruneHistory(rule, of: Sample.store) == 0)
        let values = try storage.listed(rule).compactMap { Int($0.split(separator: " ")[1]) }
        #expect((20..<40).contains(values.count))
        #expect(values == (0..<values.count).map { 61 - $0 })
    }

    @Test(arguments: Backend.allCases)
    func `quick writes do not push out what an entry was yesterday`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let limits = HistoryLimits(versionsMax: 12)
        let day: Int64 = 86_400_000
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 501)), now: day)
        for number: Int64 in 2...60 {
            try storage.commit(
                Sample.push(Sample.record("a", .integer(number), at: 500 + number)),
                now: 2 * day + number)
        }
        let rule = HistoryRule(limits, now: 2 * day + 100)
        func check() throws {
            let shown = try storage.listed(rule).compactMap { Int($0.split(separator: " ")[1]) }
            // The current one, the six newest, the last of each period before them, and yesterday's.
            #expect(shown == Array((51...60).reversed()) + [1])
            #expect(try storage.snapshot(at: .revision(1), rule) == ["a 1"])
            #expect(try storage.snapshot(at: .revision(20), rule) == ["a forgotten"])
            #expect(try storage.snapshot(at: .revision(58), rule) == ["a 58"])
        }
        try check()
        #expect(try storage.pruneHistory(rule, of: Sample.store) > 40)
        try check()
        #expect(try storage.pruneHistory(rule, of: Sample.store) == 0)
    }

    @Test(arguments: Backend.allCases)
    func `of an entry the newest versions are kept, and of a store the young ones`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let limits = HistoryLimits(milliseconds: 30_000, versionsMax: 3)
        for number: Int64 in 1...8 {
            try storage.commit(
                Sample.push(Sample.record("a", .integer(number), at: 500 + number)),
                now: 1_000 * number)
        }
        try storage.commit(Sample.push(Sample.record("b", .integer(1), at: 600)), now: 9_000)
        let rule = HistoryRule(limits, now: 10_000)
        func check() throws {
            let shown = try storage.listed(rule).filter { $0.hasPrefix("a") }
            #expect(shown.map { $0.prefix(3) } == ["a 8", "a 7", "a 6", "a 5"])
            #expect(try storage.snapshot(at: .revision(4), rule) == ["a forgotten"])
            #expect(try storage.snapshot(at: .revision(5), rule) == ["a 5"])
        }
        // What is not kept is not shown either, before it is pruned.
        try check()
        #expect(try storage.storesToPrune(rule) == [])
        #expect(try storage.pruneHistory(rule, of: Sample.store) == 4)
        try check()
        #expect(try storage.pruneHistory(rule, of: Sample.store) == 0)
        let later = HistoryRule(limits, now: 37_500)
        #expect(try storage.listed(later) == ["b 1", "a 8", "a 7"].map { full($0) })
        #expect(throws: HistoryForgotten(knownSince: 7_000)) {
            try storage.snapshot(at: .revision(6), later)
        }
        #expect(try storage.snapshot(at: .revision(7), later) == ["a 7"])
        #expect(try storage.storesToPrune(later) == [Sample.store])
        // The two versions, and the note that is not needed any more.
        #expect(try storage.pruneHistory(later, of: Sample.store) == 3)
        #expect(try storage.historyState().floor.revision == 7)
        #expect(try storage.storesToPrune(later) == [])
        #expect(try storage.snapshot(at: .revision(7), later) == ["a 7"])
        let last = HistoryRule(limits, now: 300_000)
        #expect(try storage.pruneHistory(last, of: Sample.store) == 1)
        #expect(try storage.historyState().bytes == 0)
        #expect(try storage.storesToPrune(last) == [])

        func full(_ start: String) -> String {
            switch start {
            case "b 1": "b 1 came 9@9000 current"
            case "a 8": "a 8 came 8@8000 current"
            default: "a 7 came 7@7000 replaced 8@8000 by 508"
            }
        }
    }

    @Test(arguments: Backend.allCases)
    func `without a history nothing is kept, and what was is removed`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        let off = HistoryLimits(milliseconds: 0)
        for number: Int64 in 1...3 {
            try storage.commit(
                Sample.push(Sample.record("a", .integer(number), at: 500 + number)),
                now: 1_000 * number)
        }
        func commit(_ number: Int64) throws {
            let push = Sample.push(Sample.record("a", .integer(number), at: 500 + number))
            _ = try storage.commit(
                [push], rules: Sample.rules(now: 1_000 * number, history: off))
        }
        try commit(4)
        #expect(try storage.historyState().floor.revision == 4)
        let rule = HistoryRule(off, now: 5_000)
        #expect(try storage.listed(rule) == ["a 4 came 4@4000 current"])
        #expect(try storage.storesToPrune(rule).isEmpty)
        try commit(5)
        #expect(try storage.pruneHistory(rule, of: Sample.store) == 0)
        // With one again.
        try storage.commit(Sample.push(Sample.record("a", .integer(6), at: 506)), now: 6_000)
        #expect(
            try storage.listed() == [
                "a 6 came 6@6000 current", "a 5 came 5@5000 replaced 6@6000 by 506",
            ])
        #expect(try storage.snapshot(at: .revision(5)) == ["a 5"])
        #expect(throws: HistoryForgotten(knownSince: 5_000)) {
            try storage.snapshot(at: .revision(4))
        }
    }

    @Test(arguments: Backend.allCases)
    func `without a history, a note that a key was forgotten goes with the next push`(
        backend: Backend
    ) throws {
        let storage = try backend.open(in: folder)
        let rules = Sample.rules(history: HistoryLimits(milliseconds: 0))
        let secret = Sample.record("pin", .integer(1), at: 500)
        let push = Push([try Transaction([secret], unkept: [secret.key])])
        _ = try storage.commit([PendingPush(store: Sample.store, push: push)], rules: rules)
        #expect(try storage.historyState().bytes > 0)
        _ = try storage.commit([Sample.push(Sample.record("a", nil, at: 600))], rules: rules)
        #expect(try storage.historyState().bytes == 0)
    }

    @Test(arguments: Backend.allCases)
    func `a list comes in pages, each after the one before`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        for number: Int64 in 1...12 {
            try storage.commit(
                Sample.push(
                    Sample.record("a", .integer(number), at: 500 + number),
                    Sample.record("b", number == 7 ? nil : .integer(number), at: 500 + number)),
                now: 1_000 * number)
        }
        let all = try storage.listed()
        #expect(all.count == 24)
        for size in [1, 5, 24, 25] {
            var pages: [String] = []
            var place: HistoryRule.Place?
            repeat {
                let page = try storage.page(after: place, max: size)
                pages += page.versions
                place = page.next.flatMap { HistoryRule.Place($0.description) }
            } while place != nil
            #expect(pages == all)
        }
        // Whatever a page may have, it has one.
        #expect(try storage.page(after: nil, max: 9, bytesMax: 1).versions == [all[0]])
        #expect(try storage.listed(of: try Key("c")).isEmpty)
        let other = StoreReference(
            account: Sample.account.id, identifier: try StoreIdentifier("other"))
        _ = try storage.versions(of: other, key: nil, currentOnly: false) { state, lines in
            #expect(state == StoreState() && lines.isEmpty)
            return []
        }
    }

    @Test func `the history is the same whether its versions are rows or in the head`()
        async throws
    {
        let storages = try ["collected", "rows"].map { name in
            let storage = try SQLiteServerStorage.openForServer(folder.file("\(name).sqlite"))
            try storage.makeSampleAccount()
            return storage
        }
        let (collected, rows) = (storages[0], storages[1])
        var isCollected = false
        var times = Set<Int64>()
        /// A device uses no time twice.
        func time(_ step: Int64) -> Int64 {
            while true {
                let time = 10_000 + 20 * step - .random(in: 0..<100)
                if times.insert(time).inserted { return time }
            }
        }
        func push(_ step: Int64) throws -> PendingPush {
            let writes = (0..<Int.random(in: 1...3)).map { number in
                let text = ExactString(String(repeating: "x", count: .random(in: 0...400)))
                let values: [PropertyListValue?] = [nil, .integer(step), .string(text)]
                return Sample.record(
                    "\(number)\(Int.random(in: 0..<2))", values.randomElement()!, at: time(step))
            }
            let unkept = Set(writes.prefix(step % 40 == 0 ? 1 : 0).map(\.key))
            var transactions = [try Transaction(writes, unkept: unkept)]
            if step % 7 == 0 {
                // Replaced by the push itself, which then brings the first again.
                let later = writes.map {
                    Sample.record($0.key.string, .integer(-step), at: time(step))
                }
                transactions += [try Transaction(later), transactions[0]]
            }
            return PendingPush(store: Sample.store, push: Push(transactions))
        }
        let limits = HistoryLimits(bytesMax: 30_000)
        for step: Int64 in 1...160 {
            // Others' turn: this computes for seconds.
            await Task.yield()
            let group = try (0..<Int64.random(in: 1...3)).map { _ in try push(step) }
            for storage in storages {
                _ = try storage.commit(group, rules: Sample.rules(now: step, history: limits))
            }
            try rows.unpackHistory()
            let counts = try storages.map { try $0.versionRows() }
            if counts[0] < counts[1] { isCollected = true }
            let rule = HistoryRule(limits, now: step)
            #expect(try collected.historyState() == rows.historyState())
            #expect(try collected.listed(rule) == rows.listed(rule))
            let key = try Key("0\(step % 2)")
            #expect(try collected.listed(rule, of: key) == rows.listed(rule, of: key))
        }
        #expect(isCollected)
        for storage in storages { try storage.close() }
    }

    @Test func `one history of a group is pruned, and the others with later pushes`() throws {
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        let limits = HistoryLimits(bytesMax: 16_000)
        let stores = try ["notes", "other"].map {
            StoreReference(account: Sample.account.id, identifier: try StoreIdentifier($0))
        }
        var (most, sawBoth) = (0, false)
        for number: Int64 in 1...400 {
            let group = stores.map {
                Sample.push(Sample.record("a", .integer(number), at: 500 + number), to: $0)
            }
            _ = try storage.commit(group, rules: Sample.rules(now: 1_000 + number, history: limits))
            let bytes = try stores.map { try storage.historyState(of: $0).bytes }
            most = max(most, bytes.max()!)
            sawBoth = sawBoth || bytes.min()! < 15_000 && bytes.max()! > 16_300
        }
        #expect(sawBoth)
        #expect(most <= 18_000 + 300)
        try storage.close()
    }

    @Test func `a version that is too old is removed, however few there are`() throws {
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        for number: Int64 in 1...4 {
            try storage.commit(Sample.push(Sample.record("a", .integer(number), at: 500 + number)))
            let later = HistoryRule(HistoryLimits(milliseconds: 1), now: 100_000)
            let hasHistory = number > 1
            #expect(try storage.storesToPrune(later) == (hasHistory ? [Sample.store] : []))
            if number == 3 {
                #expect(try storage.pruneHistory(later, of: Sample.store) == 2)
            }
        }
        try storage.close()
    }

    @Test func `a store is still found when all rows of its history were too old`() throws {
        let storage = try SQLiteServerStorage.openForServer(folder.file("test.sqlite"))
        try storage.makeSampleAccount()
        // The first version is a row, the second is in the head.
        for number: Int64 in 1...3 {
            let push = Sample.push(Sample.record("a", .integer(number), at: 500 + number))
            try storage.commit(push, now: 1_000 * number)
        }
        let limits = HistoryLimits(milliseconds: 1_000)
        #expect(
            try storage.pruneHistory(HistoryRule(limits, now: 3_500), of: Sample.store) == 1)
        let later = HistoryRule(limits, now: 9_000)
        #expect(try storage.storesToPrune(later) == [Sample.store])
        #expect(try storage.pruneHistory(later, of: Sample.store) == 1)
        #expect(try storage.versionRows() == 0)
        try storage.close()
    }

    @Test(arguments: Backend.allCases)
    func `the history of an erased account is erased`(backend: Backend) throws {
        let storage = try backend.open(in: folder)
        for number: Int64 in 1...200 {
            try storage.commit(
                Sample.push(Sample.record("a", .integer(number), at: 500 + number)))
        }
        #expect(try storage.erase(Sample.account.id, now: 2, by: .operatorLocally))
        while try storage.eraseRest(for: 1) {}
        try storage.makeSampleAccount()
        #expect(try storage.listed().isEmpty)
        try storage.commit(Sample.push(Sample.record("a", .integer(1), at: 500)))
        #expect(try storage.listed() == ["a 1 came 1@1000 current"])
        if let sqlite = storage as? SQLiteServerStorage {
            #expect(try sqlite.versionRows() == 0)
        }
    }
}

extension SQLiteServerStorage {
    /// The number of versions that are not in the stores' heads.
    fileprivate func versionRows() throws -> Int {
        try database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM version") ?? 0 }
    }
}

extension ServerStorage {
    /// The versions of the sample's store as texts.
    func listed(
        _ rule: HistoryRule = HistoryRule(HistoryLimits(), now: 10_000), of key: Key? = nil
    ) throws -> [String] {
        try page(rule, of: key, after: nil, max: .max).versions
    }

    func page(
        _ rule: HistoryRule = HistoryRule(HistoryLimits(), now: 10_000), of key: Key? = nil,
        after place: HistoryRule.Place?, max: Int, bytesMax: Int = .max
    ) throws -> (versions: [String], next: HistoryRule.Place?) {
        var next: HistoryRule.Place?
        let versions = try versions(of: Sample.store, key: key, currentOnly: false) { _, lines in
            let page = rule.page(of: lines, after: place, max: max, bytesMax: bytesMax)
            next = page.next
            return page.chosen
        }
        return (try versions.map { try $0.version().text }, next)
    }

    /// The values of the sample's store as they were, as sorted texts.
    func snapshot(
        at time: HistoryRule.Time, _ rule: HistoryRule = HistoryRule(HistoryLimits(), now: 10_000)
    ) throws -> [String] {
        var result = Result<HistoryRule.Snapshot, HistoryForgotten>.failure(
            HistoryForgotten(knownSince: -1))
        let versions = try versions(of: Sample.store, key: nil, currentOnly: false) {
            state, lines in
            result = Result { () throws(HistoryForgotten) in
                try rule.snapshot(of: lines, at: time, in: state)
            }
            return (try? result.get().chosen) ?? []
        }
        let snapshot = try result.get()
        return
            (try versions.map { try $0.record().text }
            + snapshot.forgotten.map { "\($0) forgotten" }).sorted()
    }

    func historyState(of store: StoreReference = Sample.store) throws -> HistoryState {
        var found = HistoryState()
        _ = try versions(of: store, key: nil, currentOnly: false) { state, _ in
            found = state.history
            return []
        }
        return found
    }
}

extension UbiquityCore.Record {
    fileprivate var text: String {
        let value =
            switch content {
            case .deleted: "deleted"
            case .value(.integer(let number)): "\(number)"
            case .value(.boolean(let truth)): "\(truth)"
            case .value(.string(let string)): string.string
            case .value(let value): "\(value.quotaBytes) bytes"
            }
        return "\(key.string) \(value)"
    }
}

extension RecordVersion {
    fileprivate var text: String {
        let end =
            switch outcome {
            case .current: "current"
            case .replaced(let moment, let stamp):
                "replaced \(moment.text) by \(stamp.timestamp.milliseconds)"
            case .lost(let moment, let stamp):
                "lost \(moment.text) by \(stamp.timestamp.milliseconds)"
            }
        return "\(record.text) came \(came?.text ?? "?") \(end)"
    }
}

extension RecordVersion.Moment {
    fileprivate var text: String { "\(revision)@\(milliseconds)" }
}
