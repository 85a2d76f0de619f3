// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// The fakes do what the real things promise, and no more.
struct VirtualPartsTests {
    private func entry(_ name: String, _ number: Int64) throws -> StoredEntry {
        let key = try Key(name)
        let record = Record(
            key: key, content: .value(.integer(number)),
            stamp: Stamp(HybridTimestamp(milliseconds: number), DeviceID(rawValue: 1)))
        return StoredEntry(key: key, confirmed: record)
    }

    private func batch(_ entries: [StoredEntry], on version: Int64) -> SaveBatch {
        SaveBatch(expectedVersion: version, entries: entries, meta: nil, refused: [])
    }

    // MARK: - Disk

    @Test func `a disk has what was saved, and tells who was not first`() throws {
        let disk = VirtualDisk(name: DiskReference(device: 1, folder: "1", store: 0))
        let (first, second) = (try entry("a", 1), try entry("b", 2))
        #expect(disk.save(batch([first], on: 0)) == .saved(version: 1))
        #expect(disk.save(batch([second], on: 0)) == .conflict(disk.changes(after: 0)))
        #expect(disk.changes(after: 0).entries == [first])
        #expect(disk.save(batch([second], on: 1)) == .saved(version: 2))
        #expect(disk.changes(after: 1).entries == [second])
        #expect(disk.values.count == 2)
    }

    @Test func `an older copy of a disk has what it had`() throws {
        let disk = VirtualDisk(name: DiskReference(device: 1, folder: "1", store: 0))
        _ = disk.save(batch([try entry("a", 1)], on: 0))
        let copy = disk.content
        _ = disk.save(batch([try entry("a", 2)], on: 1))
        disk.content = copy
        #expect(disk.version == 1)
        #expect(disk.values == [try Key("a"): .integer(1)])
    }

    // MARK: - Clock

    @Test(arguments: [-200, 0, 200])
    func `a device wakes when its uptime has come, not before`(drift: Int64) {
        var clock = VirtualClock(error: 5_000, boot: 1, now: 1_000)
        clock.drift = drift
        for uptime: Int64 in [1, 999, 60_000, 86_400_000] {
            let moment = clock.moment(ofUptime: uptime)
            #expect(clock.reading(at: moment).uptime >= uptime)
            #expect(clock.reading(at: moment - 3).uptime < uptime)
        }
    }

    @Test func `a wrong wall clock does not touch the uptime, and a boot begins it anew`() {
        var clock = VirtualClock(error: 5_000, boot: 1, now: 1_000)
        #expect(clock.reading(at: 1_500) == ClockReading(wall: 6_500, uptime: 500, boot: 1))
        clock.error = -5_000
        #expect(clock.reading(at: 1_600) == ClockReading(wall: -3_400, uptime: 600, boot: 1))
        clock.reboot(as: 2, at: 2_000)
        #expect(clock.reading(at: 2_100) == ClockReading(wall: -2_900, uptime: 100, boot: 2))
    }

    // MARK: - Store

    private func push(_ name: String, _ content: Content, at time: Int64) throws -> Push {
        let record = Record(
            key: try Key(name), content: content,
            stamp: Stamp(HybridTimestamp(milliseconds: time), DeviceID(rawValue: 1)))
        return Push([try Transaction([record])])
    }

    @Test func `a store gives what changed since, or the whole without deletions`() throws {
        var store = VirtualStore()
        let admission = PushAdmission(limits: StoreLimits(), now: 1_000)
        let first = try store.admit(
            push("a", .value(.integer(1)), at: 1), by: admission, in: 1, running: 1_000)
        let second = try store.admit(
            push("a", .deleted, at: 2), by: admission, in: 1, running: 1_000)
        #expect(try store.changes(since: nil, now: 0).records.isEmpty)
        let changes = try store.changes(since: first.position.cursor, now: 0)
        #expect(changes.records.map(\.content) == [.deleted])
        #expect(changes.cursor == second.position.cursor)
        #expect(throws: LinkFailure.self) {
            try store.changes(since: Position(epoch: 9, revision: 2).cursor, now: 0)
        }
    }

    @Test func `a compacted tombstone is gone, and devices from before it are told`() throws {
        var store = VirtualStore()
        let admission = PushAdmission(limits: StoreLimits(), now: 1_000)
        let first = try store.admit(
            push("a", .value(.integer(1)), at: 1), by: admission, in: 1, running: 1_000)
        _ = try store.admit(push("a", .deleted, at: 2), by: admission, in: 1, running: 1_000)
        _ = try store.admit(push("b", .deleted, at: 12), by: admission, in: 1, running: 1_001)
        let rule = CompactionRule(
            retentionMilliseconds: 10, liveMilliseconds: 10, tombstonesMax: 8)
        _ = store.compact(rule, running: 1_005) { _ in false }
        #expect(store.records.count == 2)
        _ = store.compact(rule, running: 1_010) { _ in false }
        #expect(store.records.keys.map(\.string) == ["b"])
        #expect(throws: LinkFailure(.cursorGone(isOtherHistory: false), "forgotten deletions")) {
            try store.changes(since: first.position.cursor, now: 0)
        }
    }

    // MARK: - Chance

    @Test func `waiting times have the mean that was asked for`() {
        let chance = Chance(seed: 5)
        let sum = (0..<20_000).reduce(0) { sum, _ in sum + chance.interval(mean: 1_000) }
        #expect((950...1_050).contains(sum / 20_000))
    }

    @Test func `a fault strikes as often as it should`() {
        let chance = Chance(seed: 5)
        let count = (0..<20_000).count { _ in chance.perMille(60) }
        #expect((1_080...1_320).contains(count))
    }

    // MARK: - Marks

    @Test func `every kind of value carries the mark of its write`() {
        for number in 0..<6 {
            let mark = Mark(number: number, batch: 77)
            #expect(Mark(mark.value(padding: 3)) == mark)
        }
        #expect(Mark(.integer(5)) == nil)
        #expect(Mark(nil) == nil)
    }
}
