// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `The slices of a store` {
    /// A store of which only stamps are known, and each transaction writes several keys.
    private struct Store {
        var state = StoreState()
        var records: [Key: (revision: Int64, value: Int?)] = [:]

        mutating func commit(_ writes: [(Key, Int?)]) {
            _ = state.lineage.advance(in: 7)
            for (key, value) in writes { records[key] = (state.lineage.revision, value) }
        }

        var lines: [HistoryRule.Line] {
            records.map { key, record in
                HistoryRule.Line(
                    key: key, stamp: Stamp(.zero, .unassigned),
                    came: RecordVersion.Moment(revision: record.revision, milliseconds: 1),
                    fate: .current(isKept: true), isDeletion: record.value == nil,
                    bytes: HistoryRule.bytes(key: key.bytesCount, value: record.value ?? 0))
            }
        }

        var values: [Key: Int] { records.compactMapValues(\.value) }
    }

    private static let least = 4_096

    /// Reads a store to the end.
    /// - Parameter change: Called after each slice, with its number.
    private func read(
        _ store: inout Store, _ change: (inout Store, Int) -> Void = { _, _ in }
    ) throws -> (values: [Key: Int], slices: Int, greatest: Int) {
        var slices = StoreSlices(bytesMin: Self.least)
        var found: [Key: Int] = [:]
        var (count, greatest) = (0, 0)
        while true {
            let lines = store.lines
            let next = slices.next(lines, in: store.state)
            let items = try #require(next)
            for item in items {
                for key in found.keys where key.whole == item.key { found[key] = nil }
                for place in item.places {
                    found[lines[place].key] = store.records[lines[place].key]?.value
                }
            }
            let bytes = items.flatMap(\.places).reduce(0) { $0 + lines[$1].bytes }
            count += 1
            greatest = max(greatest, bytes)
            guard !slices.isOver, count < 10_000 else { break }
            change(&store, count)
        }
        #expect(slices.isOver)
        return (found, count, greatest)
    }

    private func key(_ number: Int) throws -> Key { try Key("k\(number)") }

    private func store(keys: Int) throws -> Store {
        var store = Store()
        for number in 0..<keys { store.commit([(try key(number), 100)]) }
        return store
    }

    @Test func `have everything once if nothing changes, and no more than fits in each`() throws {
        var store = try store(keys: 700)
        let read = try read(&store)
        #expect(read.values == store.values)
        #expect(read.slices > 50 && read.slices <= 65)
        #expect(read.greatest <= max(Self.least, store.lines.reduce(0) { $0 + $1.bytes } / 64))
        var empty = Store()
        #expect(try self.read(&empty).slices == 1)
    }

    @Test func `have a value that is larger than a slice alone`() throws {
        var store = try store(keys: 3)
        store.commit([(try key(1), 50_000)])
        let read = try read(&store)
        #expect(read.values == store.values && read.slices == 3)
    }

    @Test func `have a key and its parts together`() throws {
        var store = try store(keys: 2)
        let whole = try key(0)
        let parts = try (0..<40).map { whole.part(try #require(PartID("c\($0)"))) }
        store.commit(parts.map { ($0, 1_000) })
        let another = try key(1)
        let read = try read(&store) { store, slice in
            if slice == 1 { store.commit([(parts[3], nil), (another, 5)]) }
        }
        #expect(read.values == store.values)
        #expect(read.values[parts[3]] == nil && read.values[parts[4]] == 1_000)
    }

    @Test func `have no part of a transaction that was committed between them`() throws {
        var store = try store(keys: 200)
        let ends = (try key(0), try key(199))
        let read = try read(&store) { store, slice in
            if slice < 9 { store.commit([(ends.0, slice), (ends.1, slice)]) }
        }
        #expect(read.values == store.values)
        #expect(read.values[ends.0] == 8 && read.values[ends.1] == 8)
    }

    @Test func `end, even if all of the store changes between any two of them`() throws {
        var store = try store(keys: 500)
        let read = try read(&store) { store, slice in
            store.commit(store.records.keys.map { ($0, 100 + slice) })
        }
        #expect(read.values == store.values)
        #expect(read.slices < 200)
        #expect(Set(read.values.values).count == 1)
    }

    @Test(arguments: 0..<20)
    func `are the store of one moment, whatever changes between them`(seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed))
        var store = try store(keys: 150)
        let keys = try (0..<170).map { number in
            let key = try self.key(number)
            return number.isMultiple(of: 5) ? key.part(PartID("cx")!) : key
        }
        let read = try read(&store) { store, _ in
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                store.commit(
                    (0..<Int.random(in: 1...20, using: &random)).map { number in
                        let value = Int.random(in: -400...900, using: &random)
                        return (keys.randomElement(using: &random)!, value > 0 ? value : nil)
                    })
            }
        }
        #expect(read.values == store.values)
    }

    @Test func `end early if the store is another one, or has forgotten what was removed`() throws {
        var store = try store(keys: 100)
        var slices = StoreSlices(bytesMin: Self.least)
        let first = slices.next(store.lines, in: store.state)
        #expect(first?.first?.key == (try key(0)))
        var other = slices
        let none = other.next([], in: StoreState())
        #expect(none == nil)
        store.commit([(try key(0), nil)])
        store.state.lineage.compactedRevision = store.state.lineage.revision
        let second = slices.next(store.lines, in: store.state)
        #expect(second == nil)
    }
}
