// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// Tests that a process's memory stays in proportion to the content of its store.
struct EntryTableTests {
    private func pending(_ key: Key, _ value: Int64?, at time: UInt64) -> PendingWrite {
        PendingWrite(
            record: Record(
                key: key, content: value.map { .value(.integer($0)) } ?? .deleted,
                stamp: Stamp(HybridTimestamp(rawValue: time), DeviceID(rawValue: 1))),
            transaction: time)
    }

    @Test func `parts that came and went leave nothing to look through`() throws {
        let key = try Key("k")
        var table = EntryTable()
        let parts = (0..<10_000).map { key.part(PartID("x\($0)")!) }
        for (number, part) in parts.enumerated() {
            table.write(pending(part, Int64(number), at: UInt64(number + 1)))
            if number > 0 { table.update(parts[number - 1]) { $0.dropPending() } }
            #expect(table.mergeState(key).parts.map(\.id) == [part.part])
        }
        let (_, saving) = table.beginSave()
        table.finishSave(saving, emptyMax: 1_024)
        #expect(table.count <= 2)
        #expect(table.mergeState(key).parts.map(\.id) == [parts.last?.part])
        #expect(table.transaction(of: parts[9_999]) == 10_000)
        #expect(table.usage == Usage(bytes: 8 + 5 + 16, keys: 0, parts: 1))
        #expect(table.waiting == [parts[9_999]])
    }

    @Test func `entries that say nothing are dropped when most are so and all is saved`() throws {
        var table = EntryTable()
        let keys = try (0..<5_000).map { try Key("k\($0)") }
        for (number, key) in keys.enumerated() {
            table.write(pending(key, 1, at: UInt64(number + 1)))
        }
        table.update(keys[0]) { $0.isAcknowledged = true }
        for key in keys[1...4_000] { table.update(key) { $0.dropPending() } }
        let (_, saving) = table.beginSave()
        table.write(pending(keys[4_500], 2, at: 9_000))
        table.finishSave(saving, emptyMax: 1_024)
        #expect(table.count == 5_000)
        let (entries, again) = table.beginSave()
        #expect(entries.map(\.key) == [keys[4_500]])
        table.finishSave(again, emptyMax: 1_024)
        #expect(table.count == 1_000)
        #expect(table.usage.keys == 1_000)
        #expect(table[keys[0]]?.isAcknowledged == true)
        #expect(!table.waiting.contains(keys[0]) && table.waiting.count == 999)
        #expect(table.value(keys[4_500]) == .integer(2))
        #expect(table.isSaved)
    }

    @Test(
        arguments: [.saveFailed("full"), .saveConflicted(DiskChanges(version: 2))]
            as [SyncEngine.Event])
    func `entries that say nothing stay to be saved when their save has not succeeded`(
        _ event: SyncEngine.Event
    ) throws {
        let disk = try (1...1_600).map { number in
            let key = try Key("k\(number)")
            let write = pending(key, number > 1_500 ? 1 : nil, at: UInt64(number))
            return StoredEntry(key: key, confirmed: write.record)
        }
        let now = ClockReading(wall: 0, uptime: 0, boot: 1)
        var engine = SyncEngine(disk: DiskChanges(version: 1, entries: disk), seed: 1, at: now)
        engine.handle(.leading(true), at: now)
        let changes = ChangeSet(
            records: [], cursor: Cursor("c")!, serverMilliseconds: 0, isWhole: false,
            horizon: HybridTimestamp(rawValue: 1_501))
        engine.receive(changes, stamped: SyncEngine.Shown(), at: now)
        let first = engine.nextSave(at: now)
        #expect(first?.entries.count == 1_500)
        engine.handle(event, at: now)
        let later = ClockReading(wall: 1_000, uptime: 1_000, boot: 1)
        let again = engine.nextSave(at: later)
        #expect(again?.entries == first?.entries)
        engine.handle(.saved(version: 3), at: later)
        #expect(engine.isSaved)
        #expect(engine.entries.count == 100)
    }

    @Test func `dropped entries do not change a key that waits for the app's own rule`() throws {
        let key = try Key("k")
        var table = EntryTable()
        table.setResolver({ _, _ in .integer(0) }, for: key)
        func part(_ number: Int) -> Key { key.part(PartID("r\(number)")!) }
        for number in 1...2 {
            table.write(pending(part(number), Int64(number), at: UInt64(number)))
            table.refreshViews()
        }
        let taken = table.takeConflict()
        let conflict = try #require(taken)
        for number in 0..<5_000 {
            let other = try Key("k\(number)")
            table.write(pending(other, 1, at: UInt64(number + 10)))
            table.update(other) { $0.dropPending() }
        }
        let (_, saving) = table.beginSave()
        table.finishSave(saving, emptyMax: 1_024)
        #expect(table.count < 10)
        #expect(table.value(key) == .integer(1))
        #expect(!table.hasConflict)
        let reason = table.decide(conflict, as: .integer(3))
        #expect(reason == .serverChange)
        #expect(table.value(key) == .integer(3))
    }
}
