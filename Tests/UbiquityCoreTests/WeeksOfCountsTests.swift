// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// A program that counts each minute, each time in a process of its own, and sends what it has each hour.
@Suite struct `Weeks of a program that counts each minute` {
    private static let hours = 230
    private let key = try! Key("k")

    @Test func `leaves at most 64 parts, and the sum of all that nobody removed`() throws {
        var store = Store()
        var model = Model()
        var seenLongAgo = (store: store, model: model)
        var backup = (store: store, model: model)
        for hour in 1...Self.hours {
            store.now += 3_600_000
            let counts = try (0..<60).map { _ in try Transaction([model.count(key, store.now)]) }
            #expect(try store.push(counts) == 0)
            if hour % 5 == 0 { try countLate(of: Int.random(in: 1...model.runs), &store, &model) }
            if hour % 24 == 0 { store.compact() }
            if hour % 97 == 0 {
                try remove(as: store, model, &store, &model)
                #expect(store.shown(key) == nil)
            }
            if hour % 50 == 0 { seenLongAgo = (store, model) }
            if hour % 50 == 9 {
                try remove(as: seenLongAgo.store, seenLongAgo.model, &store, &model)
            }
            if hour % 60 == 0 { store.epoch += 1 }
            if hour % 200 == 0 { backup = (store, model) }
            if hour % 200 == 20 {
                let now = (time: store.now, epoch: store.epoch, stamps: model.stamps)
                (store, model) = backup
                (store.now, store.epoch, model.stamps) = (now.time, now.epoch + 1, now.stamps)
            }
            #expect(store.shown(key) == model.shown)
            #expect(store.parts <= 64)
        }
        #expect(store.state.foldsCompacted.revision > 0)
    }

    /// A run that began long ago has gone on, offline. What is remembered no longer, it is given back.
    private func countLate(of run: Int, _ store: inout Store, _ model: inout Model) throws {
        let (write, amount) = model.continued(run, key, store.now)
        let had = model.written[run]!.stamp
        let refused = try store.push([Transaction([write], had: [write.key: had])])
        guard refused == 0 else {
            #expect(store.hasCompacted(had))
            return
        }
        model.written[run] = (write.stamp, model.written[run]!.times + 1)
        model.live["\(run).\(model.written[run]!.times)"] = amount
    }

    /// All that somebody has seen is removed.
    private func remove(
        as seen: Store, _ known: Model, _ store: inout Store, _ model: inout Model
    ) throws {
        let stamp = model.stamp(store.now)
        let writes = seen.mergeState(key).removal.map {
            Record(key: key.part($0.key), content: $0.value, stamp: stamp)
        }
        guard !writes.isEmpty else { return }
        #expect(try store.push([Transaction(writes)]) == 0)
        for number in known.live.keys { model.live[number] = nil }
    }

    /// The counts of the apps, to compare with the store's.
    private struct Model {
        var runs = 0
        var stamps = 0
        var written: [Int: (stamp: Stamp, times: Int64)] = [:]
        var totals: [Int: Int64] = [:]
        var live: [String: Int64] = [:]

        var shown: PropertyListValue? {
            live.isEmpty ? nil : .integer(live.values.reduce(0, +))
        }

        mutating func stamp(_ now: Int64) -> Stamp {
            stamps += 1
            return Stamp(
                HybridTimestamp(milliseconds: now, counter: UInt16(stamps % 60_000)),
                DeviceID(rawValue: 1))
        }

        mutating func count(_ key: Key, _ now: Int64) -> Record {
            runs += 1
            let amount = Int64.random(in: 1...9)
            let stamp = stamp(now)
            (written[runs], totals[runs], live["\(runs).1"]) = ((stamp, 1), amount, amount)
            return record(runs, key, stamp, times: 1)
        }

        mutating func continued(_ run: Int, _ key: Key, _ now: Int64) -> (Record, Int64) {
            let amount = Int64.random(in: 1...9)
            totals[run]! += amount
            let times = written[run]!.times + 1
            let write = record(run, key, stamp(now), times: times)
            return (write, amount)
        }

        private func record(_ run: Int, _ key: Key, _ stamp: Stamp, times: Int64) -> Record {
            let count = Count(times: times, total: Number(.integer(totals[run]!))!)
            let part = PartNames(run: UInt64(run)).name(.counter)
            return Record(key: key.part(part), content: .value(count.value), stamp: stamp)
        }
    }

    /// As a server keeps it.
    private struct Store {
        var state = StoreState()
        var now: Int64 = 1_800_000_000_000
        var epoch: UInt64 = 1
        var listed: [Key: Record] = [:]
        var folded: [FoldedIncrement.ID: (increment: FoldedIncrement, committed: Int64)] = [:]

        /// - Returns: How many of the transactions are refused.
        mutating func push(_ transactions: [Transaction]) throws -> Int {
            let push = Push(transactions)
            let queries = push.foldedQueries(listed)
            let known = folded.values.map(\.increment).filter { increment in
                queries.contains { $0.matches(increment) }
            }
            let admitted = try state.admit(
                push, records: listed, folded: known,
                by: PushAdmission(limits: StoreLimits(), now: now), in: epoch)
            for write in admitted.writes {
                listed[write.key] = write.content == .deleted ? nil : write
            }
            for increment in admitted.folded { folded[increment.id] = (increment, now) }
            return admitted.results.count { if case .refused = $0 { true } else { false } }
        }

        mutating func compact() {
            let known = folded.values.sorted { $0.increment.mark < $1.increment.mark }
            let rule = CompactionRule(
                retentionMilliseconds: 40 * 86_400_000, liveMilliseconds: 0, tombstonesMax: 2_500)
            let dropped = state.compactFolded(
                known.map {
                    CompactionRule.Tombstone(
                        revision: $0.increment.mark.revision, committed: $0.committed,
                        timestamp: $0.increment.timestamp)
                }, by: rule, running: now)
            for kept in known.prefix(dropped?.count ?? 0) { folded[kept.increment.id] = nil }
            #expect(state.folded == folded.count)
        }

        func hasCompacted(_ stamp: Stamp) -> Bool {
            stamp.timestamp <= state.foldsCompacted.timestamp
        }

        var parts: Int { listed.keys.count(where: \.isPart) }

        func mergeState(_ key: Key) -> MergeState {
            MergeState(
                base: nil,
                parts: listed.values.compactMap { record in
                    record.content.value.map {
                        MergeState.Part(
                            id: record.key.part!, ConcurrentValue(value: $0, stamp: record.stamp))
                    }
                })
        }

        func shown(_ key: Key) -> PropertyListValue? {
            let mergeState = mergeState(key)
            return mergeState.parts.isEmpty ? nil : mergeState.value(nil)
        }
    }
}
