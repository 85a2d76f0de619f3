// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `A store's history` {
    private typealias Moment = RecordVersion.Moment

    private func line(
        _ key: String, came: Int64, _ fate: HistoryRule.Line.Fate, bytes: Int = 100
    ) throws -> HistoryRule.Line {
        let stamp = Stamp(HybridTimestamp(milliseconds: came * 10), DeviceID(rawValue: 1))
        return HistoryRule.Line(
            key: try Key(key), stamp: stamp, came: at(came), fate: fate, isDeletion: false,
            bytes: bytes)
    }

    private func at(_ revision: Int64) -> Moment {
        Moment(revision: revision, milliseconds: revision * 1_000)
    }

    private func replaced(_ revision: Int64) -> HistoryRule.Line.Fate {
        .replaced(at(revision), by: Stamp(.zero, .unassigned))
    }

    private func lost(_ revision: Int64) -> HistoryRule.Line.Fate {
        .lost(at(revision), by: Stamp(.zero, .unassigned))
    }

    private func rule(
        age: Int64 = 1_000_000, versions: Int = 50, bytes: Int = 1_000_000, now: Int64 = 100_000
    ) -> HistoryRule {
        HistoryRule(
            HistoryLimits(milliseconds: age, versionsMax: versions, bytesMax: bytes), now: now)
    }

    @Test func `within its limits loses nothing`() throws {
        let lines = try [
            line("a", came: 1, replaced(2)), line("a", came: 2, lost(2)),
            line("a", came: 2, .current(isKept: true)),
        ]
        let pruning = rule().prune(lines, of: HistoryState(bytes: 999_999, oldest: 1))
        #expect(pruning.removed.isEmpty && pruning.forgotten.isEmpty)
        // What is known of it without reading is exact again. A current record is not a part of it.
        #expect(pruning.state == HistoryState(bytes: 200, oldest: 2_000))
    }

    @Test func `loses the oldest versions of an entry first, and then what was unknown is said`()
        throws
    {
        let lines =
            try (1...6).map { try line("a", came: $0, replaced($0 + 1)) }
            + [line("b", came: 1, replaced(2))]
        let pruning = rule(versions: 4).prune(lines, of: HistoryState())
        #expect(pruning.removed == [0, 1])
        #expect(pruning.forgotten == [HistoryRule.Line(thinned: try Key("a"), before: at(3))])
        #expect(pruning.state.floor == .start)
        // The next note takes the place of that one.
        let next = Array(lines.dropFirst(2)) + pruning.forgotten
        let second = rule(versions: 3).prune(next, of: pruning.state)
        #expect(second.removed == [0, 5])
        #expect(second.forgotten.map(\.ended) == [at(4)])
    }

    @Test func `does not lose sight of the store where only writes that lost are dropped`() throws {
        let lines = try (1...6).map { try line("a", came: $0, lost($0)) }
        let pruning = rule(versions: 4).prune(lines, of: HistoryState())
        #expect(pruning.removed == [0, 1])
        #expect(pruning.forgotten.isEmpty)
        let old = rule(age: 95_000).prune(lines, of: HistoryState())
        #expect(old.removed == [0, 1, 2, 3])
        #expect(old.state.floor == .start)
    }

    @Test func `does not reach back beyond its age, by the times at which versions ended`() throws {
        let lines =
            try (1...6).map { try line("a", came: $0, replaced($0 + 1)) }
            + [HistoryRule.Line(forgotten: try Key("b"), before: at(3))]
        let pruning = rule(age: 96_000).prune(lines, of: HistoryState())
        #expect(pruning.removed == [0, 1, 6])
        #expect(pruning.state.floor == at(3))
        #expect(pruning.state.oldest == 4_000)
        let off = rule(age: 0).prune(lines, of: HistoryState())
        #expect(off.removed == Array(0..<7))
        #expect(off.state == HistoryState(floor: at(7)))
    }

    @Test func `too large leaves room for further versions`() throws {
        let lines = try (1...10).map { number in
            try line(number.isMultiple(of: 2) ? "a" : "b", came: number, replaced(number + 2))
        }
        let pruning = rule(bytes: 800).prune(lines, of: HistoryState())
        #expect(pruning.removed == [0, 1, 2])
        #expect(pruning.state == HistoryState(bytes: 700, floor: at(5), oldest: 6_000))
        #expect(rule(bytes: 1_000).prune(lines, of: HistoryState()).removed.isEmpty)
    }

    /// A version with a time of its own.
    private func version(
        _ key: String, _ revision: Int64, from came: Int64, to ended: Int64
    ) throws -> HistoryRule.Line {
        var line = try line(
            key, came: revision,
            .replaced(
                Moment(revision: revision + 1, milliseconds: ended),
                by: Stamp(.zero, .unassigned)))
        line.came.milliseconds = came
        return line
    }

    private func left(_ lines: [HistoryRule.Line], _ pruning: HistoryRule.Pruning)
        -> [HistoryRule.Line]
    {
        let removed = Set(pruning.removed)
        return lines.indices.filter { !removed.contains($0) }.map { lines[$0] } + pruning.forgotten
    }

    @Test func `keeps yesterday's last value through ten thousand quick versions`() throws {
        let (hour, day): (Int64, Int64) = (3_600_000, 86_400_000)
        var lines = try [
            version("a", 1, from: day, to: day + hour),
            version("a", 2, from: day + hour, to: 2 * day),
        ]
        let start = 2 * day
        for number: Int64 in 0..<10_000 {
            lines.append(
                try version(
                    "a", 3 + number, from: start + number * 10, to: start + number * 10 + 10))
        }
        let now = start + 100_000
        let rule = HistoryRule(HistoryLimits(), now: now)
        let pruning = rule.prune(lines, of: HistoryState())
        let kept = left(lines, pruning)
        let versions = kept.filter { !$0.isForgotten }
        #expect(versions.count <= rule.limits.versionsMax)
        #expect(versions.contains { $0.came.revision == 2 })
        // The newest are there, too.
        let newest = Set(10_002 - Int64(rule.limits.newestMax) + 1...10_002)
        #expect(newest.isSubset(of: versions.map(\.came.revision)))
        // The store as of yesterday is known, that of most moments of the flood is not.
        var state = StoreState()
        state.lineage = Lineage(
            spans: [Lineage.Span(firstRevision: 1, epoch: 1)], revision: 10_003)
        for lines in [lines, kept] {
            func snapshot(_ revision: Int64) throws -> HistoryRule.Snapshot {
                try rule.snapshot(of: lines, at: .revision(revision), in: state)
            }
            #expect(try snapshot(2).forgotten.isEmpty)
            #expect(try snapshot(2).chosen.map { lines[$0].came.revision } == [2])
            #expect(try snapshot(4_000).forgotten == [Key("a")])
            #expect(try snapshot(4_000).chosen.isEmpty)
            #expect(try snapshot(10_000).chosen.map { lines[$0].came.revision } == [10_000])
        }
    }

    @Test func `keeps the value from before a slider was dragged, though it came just before`()
        throws
    {
        let start: Int64 = 1_800_000_000_000
        // Three values of one minute, of which the second was there when the drag began.
        var lines = try [
            version("a", 1, from: start, to: start + 4_000),
            version("a", 2, from: start + 4_000, to: start + 20_000),
        ]
        var time = start + 20_000
        for number: Int64 in 3..<603 {
            lines.append(try version("a", number, from: time, to: time + 100))
            time += 100
        }
        let pruning = HistoryRule(HistoryLimits(), now: time).prune(lines, of: HistoryState())
        #expect(left(lines, pruning).contains { $0.came.revision == 2 })
    }

    @Test func `keeps yesterday and the other entries through a flood of large values`() throws {
        let day: Int64 = 86_400
        var lines = try [line("a", came: 1, replaced(day)), line("b", came: 2, replaced(3))]
        let rule = rule(age: 30 * day * 1_000, bytes: 100_000, now: 2 * day * 1_000)
        var state = HistoryState()
        for second in day..<day + 500 {
            lines.append(try line("a", came: second, replaced(second + 1), bytes: 10_000))
            let pruning = rule.prune(lines, of: state)
            lines = lines.indices.filter { !pruning.removed.contains($0) }.map { lines[$0] }
            lines += pruning.forgotten
            state = pruning.state
            #expect(state.bytes <= 100_000)
        }
        #expect(state.floor == .start)
        #expect(lines.contains { $0.key.string == "b" })
        #expect(lines.contains { $0.key.string == "a" && $0.came.revision == 1 })
        #expect(lines.contains { $0.key.string == "a" && $0.came.revision == day + 499 })
    }

    @Test func `a write that lost does not stand for the value with which a day ended`() throws {
        let day: Int64 = 86_400_000
        var late = try line("a", came: 2, lost(2))
        late.came.milliseconds = day + 2
        var lines = try [version("a", 1, from: day + 1, to: 2 * day), late]
        for number: Int64 in 3..<200 {
            lines.append(
                try version("a", number, from: 2 * day + number, to: 2 * day + number + 1))
        }
        let pruning = HistoryRule(HistoryLimits(), now: 2 * day + 500)
            .prune(lines, of: HistoryState())
        #expect(!pruning.removed.contains(0) && pruning.removed.contains(1))
    }

    @Test func `thinned out by time prunes the same in one step and in several, and once`() throws {
        for _ in 0..<100 {
            var time: Int64 = 0
            var (kept, state): ([HistoryRule.Line], HistoryState) = ([], HistoryState())
            var all: [HistoryRule.Line] = []
            var rule = rule(age: 30 * 86_400_000, versions: .random(in: 6...24))
            for revision: Int64 in 1...Int64.random(in: 1...300) {
                let from = time
                time += [10, 1_000, 40_000, 900_000, 20_000_000].randomElement()!
                let key = ["a", "b"].randomElement()!
                let new =
                    try Bool.random() || Bool.random()
                    ? version(key, revision, from: from, to: time)
                    : line(key, came: revision, lost(revision))
                kept.append(new)
                all.append(new)
                guard Int.random(in: 0..<5) == 0 else { continue }
                let pruning = rule.prune(kept, of: state)
                (kept, state) = (left(kept, pruning), pruning.state)
            }
            rule.now = time
            let (one, many) = (rule.prune(all, of: HistoryState()), rule.prune(kept, of: state))
            let result = left(all, one)
            #expect(Set(result) == Set(left(kept, many)) && one.state == many.state)
            let again = rule.prune(result, of: one.state)
            #expect(again.removed.isEmpty && again.forgotten.isEmpty && again.state == one.state)
            for key in ["a", "b"] {
                let count = result.count { $0.key.string == key && !$0.isForgotten }
                #expect(count <= rule.limits.versionsMax)
            }
        }
    }

    @Test func `what must not be kept stays unknown beside older versions that are kept`() throws {
        let key = try Key("a")
        let lines = try [
            line("a", came: 1, replaced(9)), HistoryRule.Line(forgotten: key, before: at(5)),
            HistoryRule.Line(thinned: key, before: at(8)),
        ]
        var state = StoreState()
        state.lineage = Lineage(
            spans: [Lineage.Span(firstRevision: 1, epoch: 1)], revision: 9)
        func forgotten(_ revision: Int64) throws -> Set<Key> {
            try rule().snapshot(of: lines, at: .revision(revision), in: state).forgotten
        }
        #expect(try forgotten(4) == [key])
        #expect(try forgotten(6) == [])
        let pruning = rule().prune(lines, of: HistoryState())
        #expect(pruning.removed.isEmpty)
    }

    @Test func `prunes the same in one step and in several`() throws {
        for _ in 0..<300 {
            var revision: Int64 = 0
            var (kept, state): ([HistoryRule.Line], HistoryState) = ([], HistoryState())
            var all: [HistoryRule.Line] = []
            let rule = rule(age: .random(in: 85_000...99_000), versions: .random(in: 1...5))
            for _ in 0..<Int.random(in: 1...40) {
                revision += 1
                let key = ["a", "b", "c"].randomElement()!
                let new = try line(
                    key, came: revision, Bool.random() ? replaced(revision + 1) : lost(revision))
                kept.append(new)
                all.append(new)
                guard Bool.random() else { continue }
                let pruning = rule.prune(kept, of: state)
                kept = kept.indices.filter { !pruning.removed.contains($0) }.map { kept[$0] }
                kept += pruning.forgotten
                state = pruning.state
            }
            let (one, many) = (rule.prune(all, of: HistoryState()), rule.prune(kept, of: state))
            func left(_ lines: [HistoryRule.Line], _ pruning: HistoryRule.Pruning) -> Set<
                HistoryRule.Line
            > {
                Set(lines.indices.filter { !pruning.removed.contains($0) }.map { lines[$0] })
                    .union(pruning.forgotten)
            }
            #expect(left(all, one) == left(kept, many))
            #expect(one.state == many.state)
        }
    }

    @Test func `knows the store of each moment that it reaches, and of no other`() throws {
        var state = StoreState()
        state.lineage = Lineage(
            spans: [Lineage.Span(firstRevision: 1, epoch: 1)], revision: 9)
        state.history.floor = at(3)
        let lines = try [
            line("a", came: 2, replaced(4)), line("a", came: 4, lost(4)),
            line("a", came: 4, .current(isKept: true)), line("b", came: 8, .current(isKept: true)),
            line("c", came: 5, replaced(6)), line("c", came: 9, .current(isKept: true)),
            HistoryRule.Line(forgotten: try Key("d").part(PartID("c1")!), before: at(5)),
            line("d", came: 3, .current(isKept: true)),
        ]
        func chosen(_ time: HistoryRule.Time) throws -> [Int] {
            try rule().snapshot(of: lines, at: time, in: state).chosen
        }
        #expect(throws: HistoryForgotten(knownSince: 3_000)) { try chosen(.revision(2)) }
        #expect(try chosen(.revision(3)) == [0])
        #expect(try chosen(.revision(4)) == [2])
        // A key is known if all of its parts are.
        #expect(
            try rule().snapshot(of: lines, at: .revision(4), in: state).forgotten == [Key("d")])
        #expect(try chosen(.revision(5)) == [2, 4, 7])
        #expect(try chosen(.revision(7)) == [2, 7])
        for now: HistoryRule.Time in [.revision(9), .revision(99), .milliseconds(100_000)] {
            #expect(try chosen(now) == [2, 3, 5, 7])
        }
        // Of a time, the greatest revision that is known to have come by then.
        #expect(try chosen(.milliseconds(3_999)) == [0])
        #expect(try chosen(.milliseconds(7_999)) == [2, 7])
        #expect(throws: HistoryForgotten(knownSince: 3_000)) { try chosen(.milliseconds(2_999)) }
    }

    @Test func `takes in what a push replaces, in whichever way`() throws {
        let cloud = HistoryCloud()
        func write(
            _ key: String, _ value: Int64?, at time: Int64, by device: UInt64 = 1
        ) throws -> Record {
            Record(
                key: try Key(key), content: value.map { .value(.integer($0)) } ?? .deleted,
                stamp: Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: device)))
        }
        var (state, records) = cloud.start
        let (first, second) = (try write("a", 1, at: 10), try write("a", 2, at: 20))
        var push = try cloud.push([[first]], &state, &records)
        #expect(push.history.isEmpty && state.history == HistoryState())
        push = try cloud.push([[second]], &state, &records)
        #expect(push.history.replaced == [first.key: second.stamp])
        #expect(state.history.bytes == first.pushBytes && state.history.oldest == 2)
        let late = try write("a", 0, at: 5, by: 2)
        push = try cloud.push([[late]], &state, &records)
        #expect(push.writes.isEmpty && !push.isEmpty)
        #expect(push.history.passing.map(\.isLost) == [true])
        #expect(push.history.moment == Moment(revision: 2, milliseconds: 3))
        // The same again is nothing.
        for write in [first, second, late] {
            push = try cloud.push([[write]], &state, &records)
            #expect(push.history.isEmpty)
        }
        // A transaction that is refused leaves nothing.
        let large = Record(
            key: try Key("b"), content: .value(.data([UInt8](repeating: 0, count: 2_000_000))),
            stamp: second.stamp)
        push = try cloud.push([[try write("a", 3, at: 30), large]], &state, &records)
        #expect(push.isEmpty)
        // Within one push.
        let (third, fourth) = (try write("a", 3, at: 30), try write("a", nil, at: 40))
        let old = try write("a", 0, at: 6, by: 2)
        push = try cloud.push([[third], [fourth], [first], [old], [old]], &state, &records)
        #expect(push.history.replaced == [first.key: third.stamp])
        #expect(push.history.passing.map(\.record) == [third, old])
        #expect(push.history.passing.map(\.by) == [fourth.stamp, fourth.stamp])
    }

    @Test func `what must not be kept any more does not come back with a repeat`() throws {
        let cloud = HistoryCloud()
        var (state, records) = cloud.start
        func write(_ time: Int64) throws -> Record {
            Record(
                key: try Key("a"), content: .value(.integer(time)),
                stamp: Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: 1)))
        }
        let (open, secret) = (try write(10), try write(20))
        _ = try cloud.push([[open]], &state, &records)
        let push = try cloud.push(
            [try Transaction([secret], unkept: [secret.key])], &state, &records)
        #expect(push.history.unkept == [secret.key])
        #expect(try cloud.push([[open]], &state, &records).history.isEmpty)
    }

    @Test func `is due if it is too large, or has been too old for a while`() {
        let limits = HistoryLimits(milliseconds: 30_000, bytesMax: 800)
        func isDue(_ bytes: Int, since oldest: Int64, _ limits: HistoryLimits) -> Bool {
            HistoryState(bytes: bytes, oldest: oldest).isDue(within: limits, now: 100_000)
        }
        #expect(!isDue(800, since: 69_000, limits) && isDue(801, since: 99_000, limits))
        #expect(isDue(1, since: 68_999, limits) && !isDue(0, since: 0, limits))
        let off = HistoryLimits(milliseconds: 0)
        #expect(isDue(1, since: 100_000, off) && !isDue(0, since: 0, off))
    }

    @Test func `without a history its notes are removed with the next push`() throws {
        let cloud = HistoryCloud(limits: HistoryLimits(milliseconds: 0))
        var (state, records) = cloud.start
        let key = try Key("a")
        let write = Record(
            key: key, content: .deleted,
            stamp: Stamp(HybridTimestamp(milliseconds: 10), DeviceID(rawValue: 1)))
        let push = try cloud.push([try Transaction([write], unkept: [key])], &state, &records)
        #expect(push.history.unkept == [key])
        #expect(state.history.exceeds(cloud.limits, byFar: true))
    }

    @Test func `takes in nothing of what must not be kept`() throws {
        let cloud = HistoryCloud()
        var (state, records) = cloud.start
        let stamp = Stamp(HybridTimestamp(milliseconds: 10), DeviceID(rawValue: 1))
        let key = try Key("a")
        func write(_ key: Key, _ time: Int64) -> Record {
            Record(
                key: key, content: .value(.integer(time)),
                stamp: Stamp(HybridTimestamp(milliseconds: time), stamp.device))
        }
        _ = try cloud.push([[write(key, 10)]], &state, &records)
        let part = key.part(PartID("d1")!)
        let secret = try Transaction([write(part, 20)], unkept: [part])
        let transactions = [try Transaction([write(key, 30)]), secret]
        let push = try cloud.push(transactions, &state, &records)
        #expect(push.history.unkept == [key])
        #expect(push.history.replaced.isEmpty && push.history.passing.isEmpty)
        #expect(push.writes.allSatisfy { push.history.came($0) == nil })
        #expect(push.history.came(write(try Key("b"), 1)) == 2)
        // Repeated, or refused, it is nothing.
        #expect(try cloud.push([secret], &state, &records).history.isEmpty)
        let large = Record(
            key: key, content: .value(.data([UInt8](repeating: 0, count: 2_000_000))),
            stamp: write(key, 40).stamp)
        let refused = try Transaction([large], unkept: [key])
        #expect(try cloud.push([refused], &state, &records).history.isEmpty)
    }

    @Test func `in a list continues where it was`() throws {
        let place = try #require(HistoryRule.Place("1-2-3-4-5-ffffffffffffffff"))
        #expect(HistoryRule.Place(place.description) == place)
        for text in [
            "", "1-2-3-4-5", "1-2-3-4-5-6-7", "1-2-3-4-5-x", "1-2-3-4-5--6", "+1-2-3-4-5-",
        ] {
            #expect(HistoryRule.Place(text) == nil)
        }
    }
}

/// Pushes with a clock that counts them.
private final class HistoryCloud {
    private var now: Int64 = 0
    let start = (StoreState(), [Key: Record]())
    let limits: HistoryLimits

    init(limits: HistoryLimits = HistoryLimits()) { self.limits = limits }

    func push(
        _ transactions: [[Record]], _ state: inout StoreState, _ records: inout [Key: Record]
    ) throws -> CommittedPush {
        try push(transactions.map { try Transaction($0) }, &state, &records)
    }

    func push(
        _ transactions: [Transaction], _ state: inout StoreState, _ records: inout [Key: Record]
    ) throws -> CommittedPush {
        now += 1
        let push = try state.admit(
            Push(transactions), records: records, folded: [],
            by: PushAdmission(limits: StoreLimits(), now: now, history: limits),
            in: 1)
        for write in push.writes { records[write.key] = write }
        return push
    }
}
