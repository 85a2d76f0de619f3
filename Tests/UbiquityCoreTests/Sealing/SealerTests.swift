// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import UbiquityCore

/// `UBIQUITY_SEALING_ROUNDS` says for how many random records.
@Suite struct `A sealer` {
    private static let rounds =
        ProcessInfo.processInfo.environment["UBIQUITY_SEALING_ROUNDS"].flatMap { Int($0) } ?? 1_000
    private static let store = try! StoreIdentifier("com.example.app")

    private static func keyring(_ first: UInt8 = 0, generations: ClosedRange<UInt32> = 1...2)
        -> Keyring
    {
        var roots: [UInt32: Keyring.Root] = [:]
        for generation in generations {
            let bytes = (0..<32).map { UInt8($0) &+ first &+ 64 &* UInt8(generation) }
            roots[generation] = .account(Bytes32(bytes)!)
        }
        return Keyring(roots)
    }

    private static let sealer = keyring().sealer(of: store)!

    private static func open(_ record: Record, by sealer: Sealer = sealer) -> Sealer.Opening {
        var elements = 1 << 20
        return sealer.open(record, within: &elements)
    }

    private static func isUnopened(_ record: Record, by sealer: Sealer = sealer) -> Bool {
        open(record, by: sealer) == .unopened(record)
    }

    private static let record = Record(
        key: try! Key("level").part(PartID("rté")!), content: .value(.string("four")),
        stamp: Stamp(
            HybridTimestamp(milliseconds: 1_800_000_000_000, counter: 3), DeviceID(rawValue: 9),
            digest: 7))

    private static func box(_ record: Record) throws -> SealedBox {
        guard case .value(.sealed(let box)) = record.content else {
            throw UnsupportedValue("\(record) is not sealed")
        }
        return box
    }

    private static func with(_ record: Record, _ bytes: [UInt8], generation: UInt32 = 2) -> Record {
        var changed = record
        changed.content = .value(.sealed(SealedBox(generation: generation, bytes: bytes)))
        return changed
    }

    // MARK: - Whole stores

    private static func whole(_ records: [Record], horizon: Int64 = 0) -> ChangeSet {
        ChangeSet(
            records: records, cursor: Cursor("c")!, serverMilliseconds: now, isWhole: true,
            horizon: HybridTimestamp(milliseconds: horizon))
    }

    private static let now: Int64 = 1_800_000_100_000

    @Test
    func `says what of a whole store it does not open, and takes nothing clear a second time`()
        throws
    {
        let first = try #require(Self.keyring(generations: 1...1).sealer(of: Self.store))
        let other = try #require(Self.keyring(9, generations: 1...1).sealer(of: Self.store))
        var clear = Self.record
        clear.key = try Key("clear")
        var strange = Self.record
        strange.key = try Key("strange")
        let sealed = try first.sealWhole(
            Self.whole([clear, other.seal(strange)]), by: .unassigned, latest: .max, run: 7)
        #expect(sealed.unopened.map(\.key) == [strange.key])
        #expect(sealed.records.map(\.key) == [clear.key])
        #expect(sealed.records.allSatisfy { $0.content.isSealed })
        let again = try Self.sealer.sealWhole(
            Self.whole(sealed.records), by: .unassigned, latest: .max, run: 8)
        #expect(again.unopened.isEmpty && again.records.map(\.key) == [clear.key])
        #expect(throws: SealingFault.clearValue(clear.key)) {
            try Self.sealer.sealWhole(Self.whole([clear]), by: .unassigned, latest: .max, run: 9)
        }
        // What the server makes up to have it sealed.
        #expect(throws: SealingFault.repeated(clear.key)) {
            try first.sealWhole(Self.whole([clear, clear]), by: .unassigned, latest: .max, run: 9)
        }
        let time = clear.stamp.timestamp.milliseconds
        #expect(throws: SealingFault.ahead(clear.key)) {
            try first.sealWhole(Self.whole([clear]), by: .unassigned, latest: time - 1, run: 9)
        }
        let third = try #require(Self.keyring(generations: 1...3).sealer(of: Self.store))
        #expect(throws: SealingFault.otherGeneration(clear.key)) {
            try third.sealWhole(Self.whole(sealed.records), by: .unassigned, latest: time, run: 9)
        }
        var deletion = clear
        deletion.content = .deleted
        #expect(
            try Self.sealer.sealWhole(Self.whole([deletion]), by: .unassigned, latest: .max, run: 9)
                == SealedWhole())
    }

    /// A store of three keys, and what this device has agreed on.
    private func agreed() throws -> (first: Sealer, own: [Key: Record]) {
        let first = try #require(Self.keyring(generations: 1...1).sealer(of: Self.store))
        var own: [Key: Record] = [:]
        for name in ["a", "b", "c"] {
            var record = Self.record
            record.key = try Key(name)
            record.stamp.digest = first.digest(record.stamp)
            own[record.key] = record
        }
        return (first, own)
    }

    /// What somebody without the key pushes over a record, with a time and a device of its own.
    private func junk(over record: Record, after milliseconds: Int64) -> Record {
        var junk = record
        junk.content = .value(
            .sealed(SealedBox(generation: 1, bytes: [1] + [UInt8](repeating: 7, count: 48))))
        junk.stamp = Stamp(
            HybridTimestamp(milliseconds: record.stamp.timestamp.milliseconds + milliseconds),
            DeviceID(rawValue: 666), digest: 5)
        return junk
    }

    @Test func `writes anew what this device has agreed on, where a box does not open`() throws {
        let own = try agreed().own
        let device = DeviceID(rawValue: 4)
        // One of the boxes is later than the server's clock.
        let boxes = own.values.sorted { $0.key < $1.key }.enumerated().map { index, record in
            junk(over: record, after: index == 2 ? 150_000 : 10)
        }
        let sealed = try Self.sealer.sealWhole(
            Self.whole(boxes), agreed: own, by: device, latest: .max, run: 1)
        #expect(sealed.rewritten == boxes && sealed.unopened.isEmpty)
        #expect(sealed.records.count == 3)
        for (record, box) in zip(sealed.records, boxes) {
            guard case .opened(let opened) = Self.open(record) else {
                Issue.record("\(record) does not open")
                continue
            }
            #expect(opened.content == own[record.key]?.content)
            #expect(box.isOlder(than: record) && record.stamp.device == device)
            #expect(record.stamp.timestamp.milliseconds >= Self.now)
        }
        // They were one write: of one time, and of one digest.
        #expect(Set(sealed.records.prefix(2).map(\.stamp)).count == 1)
        // What this device never had, or has removed, is somebody else's to give.
        var removed = own
        let (a, b) = (try Key("a"), try Key("b"))
        removed[a] = nil
        removed[b]?.content = .deleted
        let rest = try Self.sealer.sealWhole(
            Self.whole(boxes), agreed: removed, by: device, latest: .max, run: 1)
        #expect(rest.unopened.map(\.key) == [a, b])
        #expect(rest.records.map(\.key) == [try Key("c")])
    }

    @Test func `takes the later of what the server has and what this device has agreed on`() throws
    {
        let (first, own) = try agreed()
        let (a, b) = (try Key("a"), try Key("b"))
        var (older, newer) = (try #require(own[a]), try #require(own[b]))
        (older.content, newer.content) = (.value(.string("old")), .value(.string("new")))
        older.stamp.timestamp = HybridTimestamp(milliseconds: 1_799_999_999_000)
        newer.stamp.timestamp = HybridTimestamp(milliseconds: 1_800_000_000_500)
        func values(horizon: Int64 = 0) throws -> [PropertyListValue?] {
            try Self.sealer.sealWhole(
                Self.whole([first.seal(older), first.seal(newer)], horizon: horizon), agreed: own,
                by: DeviceID(rawValue: 4), latest: .max, run: 1
            ).records.map { record in
                guard case .opened(let opened) = Self.open(record) else { return nil }
                return opened.content.value
            }
        }
        #expect(try values() == [.string("four"), .string("new")])
        // It may have been deleted since, and the deletion be forgotten.
        #expect(try values(horizon: 1_800_000_000_000) == [.string("old"), .string("new")])
        // What the server does not list is gone.
        #expect(
            try Self.sealer.sealWhole(
                Self.whole([]), agreed: own, by: DeviceID(rawValue: 4), latest: .max, run: 1)
                == SealedWhole())
    }

    @Test func `takes what older keys open, and clear values, only of a server that was restored`()
        throws
    {
        let third = try #require(Self.keyring(generations: 1...3).sealer(of: Self.store))
        let first = try #require(Self.keyring(generations: 1...1).sealer(of: Self.store))
        var clear = Self.record
        clear.key = try Key("clear")
        var old = Self.record
        old.key = try Key("old")
        let found = Self.whole([clear, first.seal(old)])
        #expect(throws: SealingFault.clearValue(clear.key)) {
            try third.sealWhole(found, by: .unassigned, latest: .max, run: 1)
        }
        #expect(throws: SealingFault.otherGeneration(old.key)) {
            try third.sealWhole(
                Self.whole([first.seal(old)]), by: .unassigned, latest: .max, run: 1)
        }
        let restored = try third.sealWhole(
            found, by: .unassigned, latest: .max, run: 1, isRestored: true)
        #expect(restored.records.map(\.key) == [clear.key, old.key])
        #expect(restored.unopened.isEmpty)
    }

    @Test func `seals a few transactions of one device at one time, and no more`() throws {
        let first = try #require(Self.keyring(generations: 1...1).sealer(of: Self.store))
        func records(_ digests: some Sequence<UInt64>) throws -> [Record] {
            try digests.enumerated().map { index, digest in
                var record = Self.record
                record.key = try Key("key\(index)")
                record.stamp.digest = digest
                return record
            }
        }
        // Each of them may have many keys.
        let honest = try records([7, 7, 8, 9, 7, 8, 9, 9])
        #expect(
            try first.sealWhole(Self.whole(honest), by: .unassigned, latest: .max, run: 7).records
                .count == 8)
        let guessed = try records(1...4)
        #expect(throws: SealingFault.contradictory(guessed[3].key)) {
            try first.sealWhole(Self.whole(guessed), by: .unassigned, latest: .max, run: 7)
        }
        // Nor of what a thief of the key before has sealed.
        #expect(throws: SealingFault.contradictory(guessed[3].key)) {
            try Self.sealer.sealWhole(
                Self.whole(guessed.map(first.seal)), by: .unassigned, latest: .max, run: 7)
        }
        var others = guessed
        others[3].stamp.device = DeviceID(rawValue: ~others[3].stamp.device.rawValue)
        #expect(
            try first.sealWhole(Self.whole(others), by: .unassigned, latest: .max, run: 7).records
                .count == 4)
        others = guessed
        others[3].stamp.timestamp = others[3].stamp.timestamp.next
        #expect(
            try first.sealWhole(Self.whole(others), by: .unassigned, latest: .max, run: 7).records
                .count == 4)
        // Of a deletion, nothing is sealed.
        others = guessed
        others[3].content = .deleted
        #expect(
            try first.sealWhole(Self.whole(others), by: .unassigned, latest: .max, run: 7).records
                .count == 3)
    }

    // MARK: - Whatever is sealed

    @Test func `opens what it sealed, gives it always the same bytes, and hides its size`() throws {
        var random = RandomSource(seed: UInt64.random(in: 0...UInt64.max))
        for _ in 0..<Self.rounds {
            let seed = random
            let record = Record.random(using: &random)
            let sealed = Self.sealer.seal(record)
            #expect(Self.open(sealed) == .opened(record), "\(seed)")
            #expect(Self.sealer.seal(record) == sealed && Self.sealer.seal(sealed) == sealed)
            let (box, value) = (try Self.box(sealed), record.content.value!)
            #expect(box.generation == 2)
            #expect(PropertyListValue.sealed(box).quotaBytes <= value.quotaBytes, "\(seed)")
            let text = 4 + CanonicalForm.encode(value).count
            #expect(box.bytes.count == 17 + SealedText.padded(text))
            // The same value in another write shows nothing of being the same.
            var other = record
            other.stamp.timestamp = other.stamp.timestamp.next
            let (again, tagged) = (try Self.box(Self.sealer.seal(other)).bytes, box.bytes)
            #expect(zip(again, tagged).count { $0 == $1 } < tagged.count / 4 + 1, "\(seed)")
        }
    }

    @Test func `pads to few sizes, by less than an eighth`() {
        var sizes: Set<Int> = []
        for count in 1...200_000 {
            let padded = SealedText.padded(count)
            sizes.insert(padded)
            if padded < count || count >= 32 && (padded - count) * 8 >= count
                || SealedText.padded(padded) != padded
            {
                Issue.record("\(count): \(padded)")
            }
        }
        #expect(sizes.count == 202 && sizes.min() == 32)
    }

    /// What fits on a device must fit on its server: the shapes whose form is largest beside what
    /// they count.
    @Test(arguments: [0, 1, 2, 3, 7, 15, 31, 63, 100, 127, 128, 129, 500, 1_000, 4_000])
    func `never counts more than the value`(count: Int) throws {
        let numbers = (0..<count).map { PropertyListValue.integer(.min + Int64($0)) }
        let names = (0..<count).map { ExactString(String($0, radix: 36)) }
        var nested = PropertyListValue.string(String(repeating: "x", count: count))
        for level in 1..<PropertyListValue.depthMax {
            nested = level.isMultiple(of: 2) ? .array([nested]) : .dictionary(["": nested])
        }
        let values: [PropertyListValue] = [
            .string(String(repeating: "é", count: count)), .data(Array(repeating: 0, count: count)),
            .array(numbers), .array(numbers.map { .array([$0]) }), nested,
            .array(Array(repeating: .array([]), count: count)),
            .array(Array(repeating: .dictionary(["": .dictionary([:])]), count: count)),
            .dictionary(Dictionary(uniqueKeysWithValues: zip(names, numbers))),
            .dictionary(
                Dictionary(uniqueKeysWithValues: names.map { ($0, .dictionary(["": .data([])])) })),
        ]
        for value in values {
            var record = Self.record
            record.content = .value(value)
            let box = try Self.box(Self.sealer.seal(record))
            #expect(
                PropertyListValue.sealed(box).quotaBytes <= value.quotaBytes, "\(box)")
            #expect(box.bytes.count <= value.quotaBytes + value.quotaBytes / 8 + 64)
        }
    }

    // MARK: - What does not open

    @Test func `opens nothing of which a bit is another, or a byte too few or too many`() throws {
        let sealed = Self.sealer.seal(Self.record)
        let bytes = try Self.box(sealed).bytes
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << UInt8(bit)
                #expect(Self.isUnopened(Self.with(sealed, changed)), "\(index)")
            }
            #expect(Self.isUnopened(Self.with(sealed, Array(bytes[..<index]))))
            #expect(Self.isUnopened(Self.with(sealed, Array(bytes[index...].dropFirst()))))
        }
        #expect(Self.isUnopened(Self.with(sealed, bytes + [0])))
        #expect(Self.open(Self.with(sealed, bytes)) == .opened(Self.record))
    }

    @Test func `opens a box only as the content of its own write`() throws {
        let sealed = Self.sealer.seal(Self.record)
        let changes: [(inout Record) -> Void] = [
            { $0.key = try! Key("level").part(PartID("rt")!) },
            { $0.key = try! Key("levels").part(PartID("rté")!) },
            { $0.key = try! Key("level") }, { $0.key = try! Key("levelrté") },
            { $0.stamp.timestamp = $0.stamp.timestamp.next },
            {
                $0.stamp.timestamp = HybridTimestamp(rawValue: $0.stamp.timestamp.rawValue + 65_536)
            },
            { $0.stamp.device = DeviceID(rawValue: 8) }, { $0.stamp.digest = 6 },
            { $0.stamp.digest = 0 },
        ]
        for (index, change) in changes.enumerated() {
            var moved = sealed
            change(&moved)
            #expect(Self.isUnopened(moved), "\(index)")
        }
        // Two boxes exchanged.
        var other = Self.record
        (other.key, other.content) = (try Key("b"), .value(.string("five")))
        var swapped = Self.sealer.seal(other)
        swapped.content = sealed.content
        #expect(Self.isUnopened(swapped))
    }

    @Test func `opens nothing of another store, account or generation`() throws {
        let sealed = Self.sealer.seal(Self.record)
        let box = try Self.box(sealed)
        let other = try #require(Self.keyring().sealer(of: StoreIdentifier("com.example.apq")))
        #expect(Self.isUnopened(sealed, by: other))
        let stranger = try #require(Self.keyring(1).sealer(of: Self.store))
        #expect(Self.isUnopened(sealed, by: stranger))
        // Another generation, and one whose key is another.
        let other3 = Self.with(sealed, box.bytes, generation: 3)
        #expect(Self.open(other3) == .forbidden(.otherGeneration(sealed.key)))
        let later = try #require(Self.keyring(generations: 1...3).sealer(of: Self.store))
        #expect(Self.isUnopened(Self.with(sealed, box.bytes, generation: 3), by: later))
        let account = Bytes32([UInt8](0..<32))!
        let (first, second) = (
            try #require(Keyring([1: .account(account)]).sealer(of: Self.store)),
            try #require(Keyring([2: .account(account)]).sealer(of: Self.store))
        )
        let moved = Self.with(
            second.seal(Self.record), try Self.box(second.seal(Self.record)).bytes, generation: 1)
        #expect(Self.isUnopened(moved, by: first))
    }

    @Test func `takes neither an older generation nor a clear value, nor an older count`() throws {
        let old = try #require(Self.keyring(generations: 1...1).sealer(of: Self.store))
        let key = Self.record.key
        #expect(Self.open(old.seal(Self.record)) == .forbidden(.otherGeneration(key)))
        #expect(Self.open(Self.record) == .forbidden(.clearValue(key)))
        var count = Self.record
        count.key = try Key("n").part(#require(PartID("c1")))
        count.content = .value(.array([.integer(1), .integer(5)]))
        #expect(Self.open(Self.sealer.seal(count)) == .opened(count))
        #expect(Self.open(old.seal(count)) == .forbidden(.otherGeneration(count.key)))
    }

    @Test func `leaves deletions as they are`() {
        var deleted = Self.record
        deleted.content = .deleted
        #expect(Self.sealer.seal(deleted) == deleted)
        #expect(Self.open(deleted) == .opened(deleted))
    }

    @Test func `opens no more elements than it is allowed, of all boxes together`() throws {
        var record = Self.record
        record.content = .value(.array(Array(repeating: .boolean(true), count: 9)))
        let sealed = Self.sealer.seal(record)
        var elements = 19
        #expect(Self.sealer.open(sealed, within: &elements) == .opened(record))
        #expect(elements == 9)
        #expect(Self.sealer.open(sealed, within: &elements) == .unopened(sealed))
        elements = 0
        #expect(Self.sealer.open(sealed, within: &elements) == .unopened(sealed))
    }

    /// What only somebody with the key can make.
    @Test func `reads a text only in its one form`() {
        func decode(_ text: [UInt8]) -> PropertyListValue? {
            var elements = 100
            return SealedText.decode(text, within: &elements)
        }
        let text = SealedText.encode(.boolean(true))
        #expect(text.count == 32 && decode(text) == .boolean(true))
        for index in 6..<32 {
            var changed = text
            changed[index] = 1
            #expect(decode(changed) == nil)
        }
        for count: UInt8 in [0, 1, 3, 28, 29, 255] {
            var changed = text
            changed[3] = count
            #expect(decode(changed) == nil)
            changed[0] = 255
            #expect(decode(changed) == nil)
        }
        #expect(decode(Array(text.dropLast())) == nil && decode(text + [0, 0]) == nil)
        #expect(decode([]) == nil && decode([0, 0, 0]) == nil)
        // A sealed value in a box, and a value in two forms.
        let sealed = CanonicalForm.encode(.sealed(SealedBox(generation: 1, bytes: [1])))
        for inner in [sealed, [0x10, 0x81, 0], [0x10, 1, 0]] {
            let text = [0, 0, 0, UInt8(inner.count)] + inner
            #expect(decode(text + Array(repeating: 0, count: 32 - text.count)) == nil)
        }
    }

    // MARK: - Counts

    private static func count(_ total: PropertyListValue, part: String = "c01") -> Record {
        var record = record
        record.key = try! Key("visits").part(PartID(part)!)
        record.content = .value(.array([.integer(3), total]))
        return record
    }

    @Test(arguments: [
        PropertyListValue.integer(.min), .integer(5), .real(0.5), .real(-0.0), .real(.nan),
        .unsigned(.max),
    ])
    func `leaves a count in clear, with the tag of its key`(total: PropertyListValue) throws {
        for part in ["c01", "c-01", "c+", "c-+"] {
            let count = Self.count(total, part: part)
            let sealed = Self.sealer.seal(count)
            let box = try Self.box(sealed)
            #expect(Self.open(sealed) == .opened(count))
            #expect(SealedCount(bytes: box.bytes)?.value == count.content.value)
            #expect(box.bytes.count == 26 && PropertyListValue.sealed(box).quotaBytes == 0)
        }
    }

    @Test func `takes another number of the server's, but no number of a key that counts nothing`()
        throws
    {
        let sealed = Self.sealer.seal(Self.count(.integer(5)))
        let bytes = try Self.box(sealed).bytes
        let tag = Array(bytes.suffix(8))
        let sum = Self.count(.integer(50), part: "c+")
        let clear = Array(try Self.box(Self.sealer.seal(sum)).bytes.dropLast(8))
        #expect(Self.open(Self.with(sum, clear + tag)) == .opened(sum))
        for index in bytes.indices.suffix(8) {
            var changed = bytes
            changed[index] ^= 1
            #expect(Self.isUnopened(Self.with(sealed, changed)))
        }
        var moved = sealed
        moved.key = try Key("level").part(PartID("c01")!)
        #expect(Self.isUnopened(moved))
        for key in [try Key("visits"), try Key("visits").part(PartID("r01")!)] {
            moved.key = key
            #expect(Self.isUnopened(moved))
        }
        let other = try #require(Self.keyring().sealer(of: StoreIdentifier("b")))
        #expect(Self.isUnopened(sealed, by: other))
        #expect(Self.open(Self.count(.integer(5))) == .forbidden(.clearValue(sealed.key)))
        for bad in [[], [2], Array(bytes.dropLast()), bytes + [0]] {
            #expect(Self.isUnopened(Self.with(sealed, bad)), "\(bad)")
        }
    }

    @Test func `seals under a counter what is no count`() throws {
        var record = Self.count(.integer(5))
        record.content = .value(.array([.integer(3)]))
        #expect(try Self.box(Self.sealer.seal(record)).bytes.first == 1)
        #expect(Self.open(Self.sealer.seal(record)) == .opened(record))
    }

    // MARK: - Keys

    @Test func `of a confined device is the same for its stores, and none for others`() throws {
        let confined = Self.keyring().confined(to: [Self.store])
        let sealer = try #require(confined.sealer(of: Self.store))
        #expect(sealer.seal(Self.record) == Self.sealer.seal(Self.record))
        #expect(confined.sealer(of: try StoreIdentifier("other")) == nil)
        #expect(Keyring([:]).sealer(of: Self.store) == nil && Keyring([:]).current == 0)
        #expect(confined.confined(to: [Self.store]) == confined)
        #expect(!"\(confined) \(Self.keyring())".contains("64"), "a key is printed")
    }

    @Test func `replaces each digest by one that only its keys give, and never by 0`() throws {
        var digests: Set<UInt64> = []
        var stamps = [Self.record.stamp]
        for change: (inout Stamp) -> Void in [
            { $0.digest = 8 }, { $0.digest = 0 }, { $0.device = DeviceID(rawValue: 10) },
            { $0.timestamp = $0.timestamp.next },
        ] {
            var stamp = stamps[0]
            change(&stamp)
            stamps.append(stamp)
        }
        let sealers = [
            Self.sealer, try #require(Self.keyring(1).sealer(of: Self.store)),
            try #require(Self.keyring(generations: 1...1).sealer(of: Self.store)),
        ]
        for sealer in sealers {
            for stamp in stamps {
                #expect(sealer.digest(stamp) == sealer.digest(stamp))
                digests.insert(sealer.digest(stamp))
            }
        }
        #expect(digests.count == 15 && !digests.contains(0))
    }

    // MARK: - Messages

    @Test func `seals all values of a push, and opens changes, answers and history`() throws {
        var deleted = Self.record
        (deleted.key, deleted.content) = (try Key("gone"), .deleted)
        let records = [Self.record, deleted, Self.count(.integer(5))]
        let had = [Self.record.key: Self.record.stamp]
        let push = Push([try Transaction(records, had: had, unkept: [deleted.key])], saved: nil)
        let sealed = Self.sealer.seal(push)
        let writes = sealed.transactions[0].writes
        #expect(writes == records.map(Self.sealer.seal) && writes != records)
        #expect(sealed.transactions[0].had == had)
        #expect(sealed.transactions[0].unkept == [deleted.key])
        #expect(Self.sealer.seal(sealed) == sealed)

        let cursor = Position(epoch: 1, revision: 2).cursor
        let bad = Self.with(Self.record, [1, 2, 3])
        let changes = ChangeSet(
            records: writes + [bad], cursor: cursor, serverMilliseconds: 3, isWhole: true)
        let opened = try Self.sealer.open(changes, within: .small)
        #expect(opened.records == records + [bad] && opened.cursor == cursor && opened.isWhole)

        let answer = PushAnswer(
            cursor: cursor, serverMilliseconds: 3,
            results: [
                .committed([.applied, .superseded(by: writes[0]), .olderThanCompacted]),
                .refused(.sealed), .committed([.superseded(by: bad)]),
            ])
        #expect(
            try Self.sealer.open(answer, within: .small).results == [
                .committed([.applied, .superseded(by: records[0]), .olderThanCompacted]),
                .refused(.sealed), .committed([.superseded(by: bad)]),
            ])

        let versions = [Self.sealer.seal(Self.record), bad].map {
            RecordVersion(record: $0, came: nil, outcome: .current)
        }
        let page = HistoryPage(versions: versions, next: "n", serverMilliseconds: 3)
        let read = try Self.sealer.open(page, within: .small)
        #expect(read.versions.map(\.record) == [Self.record, bad] && read.next == "n")
        let snapshot = StoreSnapshot(
            records: writes, revision: 1, forgottenKeys: [], serverMilliseconds: 3)
        #expect(try Self.sealer.open(snapshot, within: .small).records == records)
    }

    @Test func `takes no message in which a server has a clear value or an old box`() throws {
        let old = try #require(Self.keyring(generations: 1...1).sealer(of: Self.store))
        let key = Self.record.key
        for (record, fault) in [
            (Self.record, SealingFault.clearValue(key)),
            (old.seal(Self.record), .otherGeneration(key)),
        ] {
            let cursor = Position(epoch: 1, revision: 2).cursor
            #expect(throws: fault) {
                try Self.sealer.open(
                    ChangeSet(
                        records: [record], cursor: cursor, serverMilliseconds: 3, isWhole: false),
                    within: .small)
            }
            #expect(throws: fault) {
                try Self.sealer.open(
                    PushAnswer(
                        cursor: cursor, serverMilliseconds: 3,
                        results: [.committed([.superseded(by: record)])]), within: .small)
            }
        }
        #expect(throws: SealingFault.clearValue(key)) {
            try Self.sealer.open(
                HistoryPage(
                    versions: [RecordVersion(record: Self.record, came: nil, outcome: .current)],
                    next: nil, serverMilliseconds: 3), within: .small)
        }
    }
}

extension Record {
    /// A value under any key.
    fileprivate static func random(using random: inout RandomSource) -> Record {
        var key = try! Key(["a", "é", "e\u{301}", "a/b", "long"].randomElement(using: &random)!)
        if Bool.random(using: &random) {
            let kind = ["a", "d", "r", "x", "q"].randomElement(using: &random)!
            key = key.part(PartID(kind + String(random.next() % 100))!)
        }
        let stamp = Stamp(
            HybridTimestamp(rawValue: random.next()), DeviceID(rawValue: random.next()),
            digest: Bool.random(using: &random) ? 0 : random.next())
        return Record(key: key, content: .value(.random(using: &random)), stamp: stamp)
    }
}
