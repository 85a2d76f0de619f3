// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// The index against Swift's dictionary.
struct KeyIndexTests {
    /// - Parameter hash: Of a key; equal keys have equal ones.
    private func check(_ keys: [Key], capacity: Int = 0, hash: (Key) -> UInt32) {
        var index = KeyIndex(capacity: capacity)
        var known: [Key] = []
        var numbers: [Key: Int] = [:]
        func find(_ key: Key) -> Int? { index.find(hash(key)) { known[$0] == key } }
        for key in keys {
            #expect(find(key) == numbers[key])
            guard numbers[key] == nil else { continue }
            index.add(known.count, hash(key))
            numbers[key] = known.count
            known.append(key)
        }
        #expect(index.count == numbers.count)
        for key in keys { #expect(find(key) == numbers[key]) }
    }

    private func randomKeys(
        _ count: Int, using generator: inout some RandomNumberGenerator
    ) throws -> [Key] {
        let letters: [Character] = ["a", "b", "é", "e\u{301}", "\0", "🚀", "."]
        return try (0..<count).map { _ in
            let length = Int.random(in: 1...12, using: &generator)
            return try Key(
                String((0..<length).map { _ in letters.randomElement(using: &generator)! }))
        }
    }

    @Test(arguments: 0..<20)
    func `it finds what a dictionary finds`(_ seed: UInt64) throws {
        var generator = RandomSource(seed: seed)
        let keys = try randomKeys(2_000, using: &generator)
        check(keys, capacity: Int.random(in: 0...3_000, using: &generator)) {
            $0.name.quickHash(.ofProcess)
        }
    }

    @Test(arguments: [1, 2, 7, 64] as [UInt32])
    func `it finds what a dictionary finds where hashes are equal`(_ hashes: UInt32) throws {
        var generator = RandomSource(seed: UInt64(hashes))
        check(try randomKeys(500, using: &generator)) { $0.name.quickHash(.ofProcess) % hashes }
        check(try randomKeys(500, using: &generator)) {
            .max - $0.name.quickHash(.ofProcess) % hashes
        }
    }

    private static let seeds: [HashSeed] = {
        var random = RandomSource(seed: 1)
        return [.ofProcess]
            + (0..<20).map { _ in
                HashSeed(random.next(), Int(truncatingIfNeeded: random.next() as UInt64))
            }
    }()

    @Test(arguments: seeds)
    func `keys of an app's kind have hashes of their own`(_ seed: HashSeed) throws {
        let names = (0..<4_096).flatMap { number in
            ["\(number)", "level.\(number)", "settings.of.the.window.\(number).frame"]
        }
        let hashes = try names.map { try Key($0).name.quickHash(seed) }
        // By chance, one pair in 60 such sets has one hash.
        #expect(Set(hashes).count >= hashes.count - 3)
        // The places of a table are its last bits: each of 4,096 is taken by three at chance.
        let places = Dictionary(grouping: hashes) { $0 & 4_095 }
        #expect(places.values.allSatisfy { $0.count < 16 })
        #expect(places.count > 3_700)
    }

    @Test(arguments: seeds)
    func `the hash is of all bytes`(_ seed: HashSeed) throws {
        for length in 1...40 {
            let text = String(repeating: "a", count: length)
            var hashes = [try Key(text).name.quickHash(seed)]
            for place in 0..<length {
                var bytes = Array(text.utf8)
                bytes[place] ^= 1
                hashes.append(try Key(String(decoding: bytes, as: UTF8.self)).name.quickHash(seed))
            }
            #expect(Set(hashes).count == length + 1)
        }
    }

    /// Names of 16 bytes that have the same hash for a given seed: the second half cancels the
    /// result of the first.
    private func colliding(_ count: Int, offset: UInt64, factor: UInt64) -> [String] {
        var names: [String] = []
        var number: UInt64 = 0
        while names.count < count {
            number += 1
            let first = (0..<8).reduce(UInt64(0)) {
                $0 | (0x30 + (number >> ($1 * 6)) & 0x3F) << ($1 * 8)
            }
            let product = (16 ^ first ^ offset).multipliedFullWidth(by: factor)
            let second = product.high ^ product.low ^ 0x2020_2020_2020_2020
            // Only text, which half of all bytes are.
            guard second & 0x8080_8080_8080_8080 == 0 else { continue }
            let bytes = [first, second].flatMap { half in
                (0..<8).map { UInt8(truncatingIfNeeded: half >> ($0 * 8)) }
            }
            names.append(String(decoding: bytes, as: UTF8.self))
        }
        return names
    }

    @Test func `keys made to have one hash have as many as others where the seed is not known`()
        throws
    {
        // The constants that every process used to have.
        let names = colliding(
            1_024, offset: 0xA076_1D64_78BD_642F, factor: 0xE703_7ED1_A0B4_28DB)
        let known = HashSeed(
            0xA076_1D64_78BD_642F, Int(bitPattern: UInt(0xE703_7ED1_A0B4_28DB as UInt64)))
        func hashes(_ seed: HashSeed) throws -> Set<UInt32> {
            Set(try names.map { try Key($0).quickHash(seed) })
        }
        #expect(try hashes(known).count == 1)
        for seed in Self.seeds { #expect(try hashes(seed).count > 1_020) }
    }
}
