// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

/// What a device makes of keys that come from outside: from another device, or by the recovery key.
@Suite struct `Keys that come from outside` {
    private static let (a, b, c) = (
        try! StoreIdentifier("a"), try! StoreIdentifier("b"), try! StoreIdentifier("c")
    )

    private static func key(_ number: UInt8) -> Bytes32 {
        Bytes32([UInt8](repeating: number, count: 32))!
    }

    /// The account's keys of these generations, of which one may be somebody else's.
    private static func keys(_ generations: ClosedRange<UInt32>, forged: UInt32? = nil) -> Keyring {
        var roots: [UInt32: Keyring.Root] = [:]
        for number in generations {
            roots[number] = .account(key(UInt8(number) + (number == forged ? 100 : 0)))
        }
        return Keyring(roots)
    }

    /// The same, whoever has which.
    private func joined(_ one: Keyring, _ other: Keyring) -> Keyring? {
        let (joined, reversed) = (try? one.joined(with: other), try? other.joined(with: one))
        #expect(joined == reversed)
        return joined
    }

    @Test func `are the first that a device has`() {
        #expect(joined(Keyring([:]), Self.keys(1...2)) == Self.keys(1...2))
        #expect(joined(Self.keys(1...2), Self.keys(1...2)) == Self.keys(1...2))
    }

    @Test func `add newer generations and older ones, and take none away`() {
        #expect(joined(Self.keys(1...2), Self.keys(2...3)) == Self.keys(1...3))
        #expect(joined(Self.keys(1...3), Self.keys(1...2)) == Self.keys(1...3))
        #expect(joined(Self.keys(2...2), Self.keys(1...5)) == Self.keys(1...5))
    }

    @Test func `are refused if they do not have the older one's current key`() {
        // Of another account, of one that was reset, or so new that they begin later.
        #expect(joined(Self.keys(1...2), Self.keys(5...6)) == nil)
        #expect(joined(Self.keys(1...2), Self.keys(1...3, forged: 2)) == nil)
        #expect(joined(Self.keys(1...2), Self.keys(1...2, forged: 2)) == nil)
        // Whoever has the current one has no other key of the past.
        #expect(joined(Self.keys(1...3), Self.keys(1...4, forged: 1)) == nil)
        #expect(joined(Self.keys(1...3), Keyring([2: .account(Self.key(2))])) != nil)
        #expect(joined(Self.keys(1...3), Keyring([4: .account(Self.key(4))])) == nil)
        // A newer key of somebody else, without one in between.
        let forged = Keyring([1: .account(Self.key(1)), 4: .account(Self.key(99))])
        #expect(joined(Self.keys(1...2), forged) == nil)
    }

    @Test func `of a confined device confine nobody who has the account's key`() throws {
        let confined = Self.keys(1...2).confined(to: [Self.a])
        #expect(joined(Self.keys(1...2), confined) == Self.keys(1...2))
        #expect(joined(Self.keys(2...3), confined)?.roots[3] == .account(Self.key(3)))
        let older = try #require(joined(Self.keys(2...3), confined))
        #expect(older.roots[1] == confined.roots[1] && older.roots[2] == .account(Self.key(2)))
        // Rotated in between: the new key is known of one store alone.
        let newer = Self.keys(1...3).confined(to: [Self.a])
        let mixed = try #require(joined(Self.keys(1...2), newer))
        #expect(mixed.roots[2] == .account(Self.key(2)) && mixed.roots[3] == newer.roots[3])
        #expect(joined(mixed, Self.keys(1...3)) == Self.keys(1...3))
        #expect(joined(Self.keys(1...2, forged: 2), confined) == nil)
        #expect(joined(Self.keys(1...2), Keyring([2: .stores([:])])) == nil)
    }

    @Test func `of two confined devices are united if they have a store in common`() {
        let keys = Self.keys(1...2)
        let (ab, bc) = (keys.confined(to: [Self.a, Self.b]), keys.confined(to: [Self.b, Self.c]))
        #expect(joined(ab, bc) == keys.confined(to: [Self.a, Self.b, Self.c]))
        #expect(joined(keys.confined(to: [Self.a]), keys.confined(to: [Self.c])) == nil)
        let forged = Self.keys(1...2, forged: 2).confined(to: [Self.b, Self.c])
        #expect(joined(ab, forged) == nil)
        // Of a generation before the common one, they may have different stores.
        let late = Keyring([1: .stores([Self.c: Self.key(9)]), 2: ab.roots[2]!])
        guard case .stores(var before)? = ab.roots[1] else { return }
        before[Self.c] = Self.key(9)
        #expect(joined(ab, late)?.roots[1] == .stores(before))
    }

    @Test func `are bounded, and the newest of both stay`() throws {
        func keys(_ generations: ClosedRange<UInt32>) -> Keyring {
            Keyring(
                Dictionary(
                    uniqueKeysWithValues: generations.map {
                        ($0, .account(Self.key(UInt8($0 % 251))))
                    }))
        }
        let max = UInt32(Keyring.generationsMax)
        let all = try #require(joined(keys(1...max), keys(max...2 * max - 1)))
        #expect(all == keys(max...2 * max - 1))
        #expect(joined(keys(1...max), keys(max + 1...2 * max)) == nil)
        var (many, more) = ([StoreIdentifier: Bytes32](), [StoreIdentifier: Bytes32]())
        for number in 0..<Keyring.storesMax {
            many[try StoreIdentifier("n\(number)")] = Self.key(1)
            more[try StoreIdentifier("n\(number + 1)")] = Self.key(1)
        }
        #expect(joined(Keyring([1: .stores(many)]), Keyring([1: .stores(more)])) == nil)
    }

    @Test func `are those of the server's mark, or older, or others`() {
        let keys = Self.keys(1...2)
        func refusal(_ keys: Keyring, _ generation: UInt32, _ check: Bytes32?) -> KeyringRefusal? {
            do throws(KeyringRefusal) {
                try keys.check(generation: generation, check: check)
                return nil
            } catch { return error }
        }
        #expect(refusal(keys, 2, keys.check) == nil)
        #expect(refusal(keys, 3, Self.keys(1...3).check) == .older)
        #expect(refusal(keys, 2, Self.keys(1...2, forged: 2).check) == .other)
        #expect(refusal(keys, 2, nil) == .other)
        #expect(refusal(keys, 1, Self.keys(1...1).check) == .other)
        #expect(refusal(keys, 0, nil) == .other)
        let confined = keys.confined(to: [Self.a])
        #expect(refusal(confined, 2, keys.check) == nil)
        #expect(refusal(confined, 3, keys.check) == .older)
        #expect(refusal(confined, 1, keys.check) == .other)
    }
}
