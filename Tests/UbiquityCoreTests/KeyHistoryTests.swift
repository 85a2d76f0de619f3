// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `The versions of a key` {
    let key = try! Key("k")
    var log = HistoryLog()

    // MARK: - Without a policy

    @Test mutating func `are its values, each with its author, those that came last first`() {
        log.put(key, .integer(1), by: 1)
        log.put(key, .integer(2), by: 2)
        log.put(key, nil, by: 1)
        log.put(try! Key("other"), .integer(9), by: 2)
        let versions = log.versions(of: key)
        #expect(versions.map(\.value) == [nil, .integer(2), .integer(1)])
        #expect(versions.map(\.stamp.device.rawValue) == [1, 2, 1])
        #expect(versions.map { $0.came?.revision } == [3, 2, 1])
        #expect(versions[0].outcome == .current)
        #expect(versions[1].outcome == .replaced(log.moment(3), by: versions[0].stamp))
        #expect(versions[2].outcome == .replaced(log.moment(2), by: versions[1].stamp))
    }

    @Test mutating func `have the same value again if it was written again`() {
        log.put(key, .integer(1), by: 1)
        log.put(key, .integer(1), by: 2)
        #expect(log.versions(of: key).map(\.value) == [.integer(1), .integer(1)])
    }

    @Test
    mutating func `have what lost on arrival and what was replaced at once, but not as a value`() {
        log.put(key, .integer(1), by: 1)
        log.lose(key, .string("late"), by: 2)
        log.put(key, .integer(3), by: 1, atOnceBefore: .integer(4))
        let versions = log.versions(of: key)
        #expect(
            versions.map(\.value) == [.integer(4), .integer(3), .string("late"), .integer(1)])
        #expect(versions.earlierValues.map(\.value) == [.integer(3), .integer(1)])
        guard case .lost(_, let winner) = versions[2].outcome else {
            Issue.record("\(versions[2].outcome)")
            return
        }
        #expect(winner == versions[3].stamp)
    }

    @Test mutating func `have the newest other value for an undo to go back to`() {
        log.put(key, .integer(1), by: 1)
        log.put(key, .integer(2), by: 1)
        log.put(key, .integer(2), by: 2)
        log.lose(key, .integer(9), by: 1)
        let versions = log.versions(of: key)
        #expect(versions.earlierValue(than: .integer(2)) == .known(.integer(1)))
        log.put(key, nil, by: 1)
        #expect(log.versions(of: key).earlierValue(than: nil) == .known(.integer(2)))
        log.put(key, .integer(2), by: 1)
        #expect(log.versions(of: key).earlierValue(than: .integer(2)) == .known(nil))
    }

    @Test mutating func `lead an undo to what was before the oldest, if a value is all they have`()
    {
        log.put(try! Key("other"), .integer(1), by: 1)
        log.put(key, .integer(5), by: 1)
        let versions = log.versions(of: key)
        #expect(versions.earlierValue(than: .integer(5)) == .atRevision(1))
        #expect([KeyVersion]().earlierValue(than: .integer(5)) == nil)
        log.put(key, nil, by: 1)
        #expect(log.versions(of: key, newest: 1).earlierValue(than: nil) == nil)
        // It is older than the history.
        var old = versions
        old[0].came?.milliseconds = 0
        #expect(old.earlierValue(than: .integer(5)) == nil)
    }

    @Test mutating func `are as many as wanted, and the newest are enough to know them`() {
        for number in 1...20 { log.put(key, .integer(Int64(number)), by: 1) }
        let few = KeyHistory(of: key, from: log.all.prefix(3)).versions(newest: 3)
        #expect(few.map(\.value) == [.integer(20), .integer(19), .integer(18)])
        #expect(few == log.versions(of: key, newest: 3))
    }

    @Test mutating func `tell a removal whose tombstone is gone`() {
        log.put(key, .integer(1), by: 1)
        log.put(key, nil, by: 2)
        log.compact(key)
        let versions = log.versions(of: key)
        #expect(versions.map(\.value) == [nil, .integer(1)])
        #expect(versions[0].stamp.device.rawValue == 2)
    }

    @Test mutating func `have a gap, and no removal, where others were thinned out`() {
        for number in 1...6 { log.put(key, .integer(Int64(number)), by: 1) }
        log.thin { $0.came.map { [2, 3, 5].contains($0.revision) } ?? false }
        let versions = log.versions(of: key)
        #expect(versions.map(\.value) == [.integer(6), nil, .integer(4), nil, .integer(1)])
        #expect(versions.map { $0.outcome == .gap } == [false, true, false, true, false])
        #expect(versions.map { $0.came?.revision } == [6, 5, 4, 2, 1])
        #expect(versions.earlierValues.map(\.value) == [.integer(4), .integer(1)])
        #expect(versions.earlierValue(than: .integer(6)) == .known(.integer(4)))
        let newest = NewestVersion(of: key, from: log.all, isWhole: true, local: [])
        #expect(newest?.now.value == .integer(6))
        #expect(newest?.before == nil)
    }

    @Test
    mutating func `have a gap between a removal and the next value, if its tombstone is gone`() {
        log.put(key, .integer(1), by: 1)
        log.put(key, nil, by: 1)
        log.compact(key)
        log.put(key, .integer(3), by: 1)
        let versions = log.versions(of: key)
        #expect(versions.map(\.value) == [.integer(3), nil, .integer(1)])
        #expect(versions[1].outcome == .gap)
    }

    @Test mutating func `have one gap for as long as the version of any part is missing`() {
        let (one, two) = (key.part(PartID("c1")!), key.part(PartID("c2")!))
        func count(_ times: Int64) -> PropertyListValue {
            Count(times: times, total: Number(.integer(times))!).value
        }
        log.put(one, count(1), by: 1)
        log.put(one, count(2), by: 1)
        log.put(two, count(1), by: 2)
        log.put(one, count(3), by: 1)
        log.put(two, count(2), by: 2)
        log.thin { $0.came?.revision == 2 }
        let versions = log.versions(of: key)
        #expect(versions.map(\.value) == [.integer(5), .integer(4), nil, .integer(1)])
        #expect(versions.map { $0.outcome == .gap } == [false, false, true, false])
    }

    @Test mutating func `from before the history have no moment, and are the last`() {
        log.put(key, .integer(1), by: 1, isKnown: false)
        log.put(key, .integer(2), by: 1)
        let versions = log.versions(of: key)
        #expect(versions.map(\.value) == [.integer(2), .integer(1)])
        #expect(versions[1].came == nil)
    }

    @Test func `have names that differ, and stay`() {
        let stamps = (0..<1_000).map { number in
            Stamp(
                HybridTimestamp(milliseconds: 1_800_000_000_000 + number / 3, counter: 0),
                DeviceID(rawValue: UInt64(number % 3) + 1))
        }
        let names = stamps.map {
            KeyVersion(key: key, value: nil, stamp: $0, outcome: .current).name
        }
        #expect(Set(names).count == 1_000)
        #expect(names.allSatisfy { $0.count == 8 })
        #expect(names[0] == "8ebff7ef")
    }

    // MARK: - With a policy

    @Test mutating func `of a counter are what all counted together`() {
        let (one, two) = (PartID("c1")!, PartID("c2")!)
        log.put(key, .integer(10), by: 1)
        log.put(key.part(one), Count(times: 1, total: Number(.integer(2))!).value, by: 1)
        log.put(key.part(two), Count(times: 1, total: Number(.integer(5))!).value, by: 2)
        log.put(key.part(one), Count(times: 2, total: Number(.integer(3))!).value, by: 1)
        let versions = log.versions(of: key)
        #expect(
            versions.map(\.value) == [.integer(18), .integer(17), .integer(12), .integer(10)])
        #expect(versions.map(\.stamp.device.rawValue) == [1, 2, 1, 1])
    }

    @Test mutating func `leave out a fold, which no app sees`() {
        let (one, sum) = (PartID("c1")!, PartID("c0")!)
        log.put(key.part(one), Count(times: 3, total: Number(.integer(3))!).value, by: 1)
        log.put(
            [
                (key.part(one), nil),
                (key.part(sum), Count(times: 3, total: Number(.integer(3))!).value),
            ], by: 2)
        #expect(log.versions(of: key).map(\.value) == [.integer(3)])
    }

    @Test mutating func `of a maximum have the raises that came too late`() {
        let part = PartID("x1")!
        log.put(key.part(part), .integer(13), by: 1)
        log.lose(key.part(part), .integer(5), by: 2)
        log.lose(key.part(PartID("c1")!), .array([.integer(1), .integer(1)]), by: 2)
        #expect(log.versions(of: key).map(\.value) == [.integer(5), .integer(13)])
    }

    @Test mutating func `under an app's own rule are what the rule makes of them`() {
        log.put(key.part(PartID("r1")!), .string("a"), by: 1)
        log.put(key.part(PartID("r2")!), .string("b"), by: 2)
        let versions = KeyHistory(of: key, from: log.all).versions(newest: 10) { earlier, later in
            guard case .string(let a) = earlier.value, case .string(let b) = later.value else {
                return later.value
            }
            return .string(ExactString(a.string + b.string))
        }
        #expect(versions.map(\.value) == [.string("ab"), .string("a")])
    }

    // MARK: - What only the device has

    @Test mutating func `begin with what waits, and have what was refused at its time`() {
        log.put(key, .integer(1), by: 1)
        log.put(key, .integer(2), by: 1)
        let waiting = KeyVersion(
            key: key, value: .integer(3), stamp: log.stamp(ofDevice: 1), outcome: .waiting)
        let refused = KeyVersion(
            key: key, value: .integer(9),
            stamp: Stamp(
                HybridTimestamp(milliseconds: log.moment(1).milliseconds + 1, counter: 0),
                DeviceID(rawValue: 1)),
            outcome: .refused(Refusal(code: "quota-keys", detail: "full")))
        let all = log.versions(of: key).adding(own: [waiting, refused], newest: 10)
        #expect(all.map(\.value) == [.integer(3), .integer(2), .integer(9), .integer(1)])
        #expect(all.earlierValues.map(\.value) == [.integer(2), .integer(1)])
        let known = KeyVersion(
            key: key, value: .integer(2), stamp: log.versions(of: key)[0].stamp, outcome: .waiting)
        #expect(log.versions(of: key).adding(own: [known], newest: 10).count == 2)
    }
}

@Suite struct `Reading a history page by page` {
    let key = try! Key("k")

    private func page(_ count: Int, _ key: Key, next: String? = "more") -> HistoryPage {
        var log = HistoryLog()
        for number in 0..<count { log.put(key, .integer(Int64(number)), by: 1) }
        return HistoryPage(versions: log.all, next: next, serverMilliseconds: 1)
    }

    @Test func `ends when there are enough, or no more`() throws {
        var reading = HistoryReading(of: key, newest: 5)
        #expect(try reading.take(page(3, key)) == "more")
        #expect(try reading.take(page(3, key)) == nil)
        #expect(reading.versions.count == 6)
        var short = HistoryReading(of: nil, newest: 5)
        #expect(try short.take(page(3, key, next: nil)) == nil)
    }

    @Test func `goes on to the end for a key with parts`() throws {
        let part = key.part(PartID("c1")!)
        var reading = HistoryReading(of: key, newest: 1)
        #expect(try reading.take(page(3, part)) == "more")
        #expect(try reading.take(page(3, part, next: nil)) == nil)
        var all = HistoryReading(of: nil, newest: 1)
        #expect(try all.take(page(3, part)) == nil)
    }

    @Test func `ends with a server that goes round in circles`() throws {
        var reading = HistoryReading(of: nil, newest: .max)
        #expect(
            try reading.take(HistoryPage(versions: [], next: "a", serverMilliseconds: 1)) == nil)
        let page = page(1_000, key)
        #expect(throws: HistoryTooLong.self) {
            while try reading.take(page) != nil {}
        }
        #expect(reading.versions.count == HistoryReading.versionsMax)
    }
}

/// A store's history as a server would list it, kept by the test.
struct HistoryLog {
    private var versions: [RecordVersion] = []
    private var revision: Int64 = 0

    /// The versions, latest arrival first, as a server lists them.
    var all: [RecordVersion] {
        versions.reversed().sorted { ($0.came?.revision ?? 0) > ($1.came?.revision ?? 0) }
    }

    func versions(of key: Key, newest max: Int = 100) -> [KeyVersion] {
        KeyHistory(of: key, from: all).versions(newest: max)
    }

    func moment(_ revision: Int64) -> RecordVersion.Moment {
        .init(revision: revision, milliseconds: 1_800_000_000_000 + revision * 1_000)
    }

    func stamp(ofDevice device: UInt64) -> Stamp {
        Stamp(
            HybridTimestamp(
                milliseconds: moment(revision).milliseconds, counter: UInt16(versions.count)),
            DeviceID(rawValue: device))
    }

    /// - Parameters:
    ///   - next: What the same push writes after it; nil for nothing.
    ///   - isKnown: Whether it came after the history began.
    mutating func put(
        _ key: Key, _ value: PropertyListValue?, by device: UInt64,
        atOnceBefore next: PropertyListValue? = nil, isKnown: Bool = true
    ) {
        put([(key, value)], by: device, isKnown: isKnown)
        guard let next else { return }
        revision -= 1
        put([(key, next)], by: device)
    }

    mutating func put(
        _ writes: [(Key, PropertyListValue?)], by device: UInt64, isKnown: Bool = true
    ) {
        revision += 1
        let stamp = stamp(ofDevice: device)
        for (key, value) in writes {
            if let index = versions.firstIndex(where: {
                $0.record.key == key && $0.outcome == .current
            }) {
                versions[index].outcome = .replaced(moment(revision), by: stamp)
            }
            let record = Record(
                key: key, content: value.map(Content.value) ?? .deleted, stamp: stamp)
            versions.append(
                RecordVersion(
                    record: record, came: isKnown ? moment(revision) : nil, outcome: .current))
        }
    }

    /// A write that comes after a later one.
    mutating func lose(_ key: Key, _ value: PropertyListValue, by device: UInt64) {
        revision += 1
        let winner = versions.last { $0.outcome == .current }?.record.stamp
        versions.append(
            RecordVersion(
                record: Record(key: key, content: .value(value), stamp: stamp(ofDevice: device)),
                came: moment(revision),
                outcome: .lost(moment(revision), by: winner ?? stamp(ofDevice: device))))
    }

    /// Removes versions from the list, as a server does that keeps some only.
    mutating func thin(_ isRemoved: (RecordVersion) -> Bool) {
        versions.removeAll(where: isRemoved)
    }

    /// Drops a tombstone.
    mutating func compact(_ key: Key) {
        versions.removeAll { $0.record.key == key && $0.outcome == .current }
    }
}
