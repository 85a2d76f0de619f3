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
        check(keys, capacity: Int.random(in: 0...3_000, using: &generator)) { $0.name.quickHash }
    }

    @Test(arguments: [1, 2, 7, 64] as [UInt32])
    func `it finds what a dictionary finds where hashes are equal`(_ hashes: UInt32) throws {
        var generator = RandomSource(seed: UInt64(hashes))
        check(try randomKeys(500, using: &generator)) { $0.name.quickHash % hashes }
        check(try randomKeys(500, using: &generator)) { .max - $0.name.quickHash % hashes }
    }

    @Test func `keys of an app's kind have hashes of their own`() throws {
        let names = (0..<4_096).flatMap { number in
            ["\(number)", "level.\(number)", "settings.of.the.window.\(number).frame"]
        }
        let hashes = try names.map { try Key($0).name.quickHash }
        // By chance, one pair in 60 such sets has one hash.
        #expect(Set(hashes).count >= hashes.count - 3)
        // The places of a table are its last bits: each of 4,096 is taken by three at chance.
        let places = Dictionary(grouping: hashes) { $0 & 4_095 }
        #expect(places.values.allSatisfy { $0.count < 16 })
        #expect(places.count > 3_700)
    }

    @Test func `the hash is of all bytes`() throws {
        for length in 1...40 {
            let text = String(repeating: "a", count: length)
            var hashes = [try Key(text).name.quickHash]
            for place in 0..<length {
                var bytes = Array(text.utf8)
                bytes[place] ^= 1
                hashes.append(try Key(String(decoding: bytes, as: UTF8.self)).name.quickHash)
            }
            #expect(Set(hashes).count == length + 1)
        }
    }
}
