// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `The keys of a sealed account` {
    private static let keyring = Keyring([
        1: .account(Bytes32([UInt8](0..<32))!), 2: .account(Bytes32([UInt8](100..<132))!),
    ])
    private static let secret = HandoverSecret([UInt8](50..<66))!
    private static let recovery = RecoveryKey([UInt8](200..<220))!

    private static func keyring(_ count: Int) -> Keyring {
        var roots: [UInt32: Keyring.Root] = [:]
        for number in 1...count {
            let key = Bytes32([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32))!
            roots[UInt32(number)] = .account(key)
        }
        return Keyring(roots)
    }

    // MARK: - Generations

    @Test func `get a next generation, whose check says that somebody with them made it`() throws {
        let key = try #require(Bytes32([UInt8](1...32)))
        let first = try #require(Keyring([:]).adding(key, at: 1))
        #expect(first == Keyring([1: .account(key)]))
        #expect(first.current == 1 && first.previous == nil)
        let later = try #require(Keyring([:]).adding(key, at: 1_800_000_000))
        #expect(later.current == 222_163_200 / 60 * 16)
        #expect(later.adding(key, at: 1_900_000_000)?.current == later.current + 1)
        // In the years 2100 and 2101, and before there was anything to seal.
        let (far, farther) = (Int64(4_102_444_800), Int64(4_133_980_800))
        let inTime = try [1_800_000_000, far, farther].map {
            try #require(Keyring([:]).adding(key, at: $0)).current
        }
        #expect(inTime[0] < inTime[1] && inTime[1] < inTime[2] && inTime[2] < UInt32.max / 2)
        #expect(Keyring([:]).adding(key, at: -5)?.current == 1)
        let second = try #require(first.adding(Bytes32([UInt8](2...33))!, at: 1))
        #expect(second.current == 2 && second.roots[1] == .account(key))
        // Of the same key in another generation, too.
        let same = try #require(first.adding(key, at: 1))
        let checks = try [first, second, same, Self.keyring].map { try #require($0.check) }
        #expect(Set(checks).count == 4 && first.check == checks[0])
        #expect(!checks.contains(key))
    }

    @Test func `are made by no confined device, and not without an end`() throws {
        let confined = Self.keyring.confined(to: [try StoreIdentifier("a")])
        let key = try #require(Bytes32([UInt8](1...32)))
        #expect(confined.adding(key, at: 1) == nil && confined.check == nil)
        #expect(Keyring([:]).check == nil)
        #expect(Keyring([.max: .account(key)]).adding(key, at: 1) == nil)
        let many = try #require(Self.keyring(Keyring.generationsMax).adding(key, at: 1))
        #expect(many.roots.count == Keyring.generationsMax)
        #expect(many.roots[1] == nil && many.roots[1_001] == .account(key))
        #expect(try Keyring(fields: many.fields) == many)
    }

    // MARK: - What a server keeps

    @Test func `are kept under a name that only the secret and the account give`() throws {
        let name = HandoverName(of: Self.secret, in: "A")
        #expect(name == HandoverName(of: Self.secret, in: "A"))
        #expect(name != HandoverName(of: Self.secret, in: "B"))
        #expect(name != HandoverName(of: HandoverSecret([UInt8](51..<67))!, in: "A"))
        #expect(HandoverName(text: name.text) == name)
        #expect(name.text.count == 32 && name.text == name.text.lowercased())
        let digits = String(repeating: "0a", count: 16)
        #expect(HandoverName(text: digits)?.text == digits)
        for text in ["", "0a", digits + "0", digits + "00", digits.uppercased(), "g" + digits] {
            #expect(HandoverName(text: text) == nil)
        }
        #expect(HandoverName([]) == nil)
    }

    @Test func `are kept for 15 minutes, at most 16 of an account`() throws {
        func name(_ number: UInt8) throws -> HandoverName {
            try #require(HandoverName([UInt8](repeating: number, count: 16)))
        }
        var shelf = HandoverShelf([])
        for number in 0..<16 {
            let removed = shelf.add(try name(UInt8(number)), isConfined: false, at: Int64(number))
            #expect(removed.isEmpty)
        }
        #expect(shelf.add(try name(3), isConfined: false, at: 20) == [try name(3)])
        #expect(shelf.add(try name(99), isConfined: false, at: 21) == [try name(0)])
        #expect(shelf.items.count == 16 && shelf.items.last?.expires == 900_021)
        // Those of the times 1 and 2 have expired.
        let removed = shelf.add(try name(100), isConfined: false, at: 900_002)
        #expect(Set(removed) == [try name(1), try name(2)])
        #expect(shelf.items.count == 15)
        let item = HandoverShelf.Item(name: try name(1), expires: 10, isConfined: false)
        #expect(item.isKept(at: 9) && !item.isKept(at: 10))
    }

    @Test func `of confined devices displace only each other`() throws {
        func name(_ number: UInt8) throws -> HandoverName {
            try #require(HandoverName([UInt8](repeating: number, count: 16)))
        }
        var shelf = HandoverShelf([])
        for number in 0..<16 as Range<UInt8> {
            #expect(shelf.add(try name(number), isConfined: false, at: 1).isEmpty)
        }
        for number in 100..<116 as Range<UInt8> {
            #expect(shelf.add(try name(number), isConfined: true, at: Int64(number)).isEmpty)
        }
        #expect(shelf.add(try name(200), isConfined: true, at: 200) == [try name(100)])
        #expect(shelf.items.filter { !$0.isConfined }.count == 16 && shelf.items.count == 32)
    }

    // MARK: - Handover and recovery

    @Test func `are handed over to whoever has the secret and the account`() throws {
        let stores = try ["com.example.app", "b"].map { try StoreIdentifier($0) }
        for keyring in [Self.keyring, Self.keyring.confined(to: Set(stores))] {
            let box = try #require(Handover.seal(keyring, of: "A", with: Self.secret))
            #expect(Handover.open(box, of: "A", with: Self.secret) == keyring)
            #expect(Handover.open(box, of: "B", with: Self.secret) == nil)
            let other = HandoverSecret([UInt8](51..<67))!
            #expect(Handover.open(box, of: "A", with: other) == nil)
            #expect(Handover.seal(keyring, of: "A", with: Self.secret) == box)
        }
    }

    @Test func `come back with the recovery key, and with no other`() throws {
        let wrap = try #require(Self.recovery.wrap(Self.keyring))
        #expect(Self.recovery.open(wrap) == Self.keyring)
        #expect(RecoveryKey([UInt8](201..<221))!.open(wrap) == nil)
        // What is for one way in is not for another.
        #expect(Handover.open(wrap, of: "A", with: Self.secret) == nil)
    }

    @Test func `give each generation a first recovery key, which only the account's key tells`()
        throws
    {
        let key = try #require(RecoveryKey(of: Self.keyring))
        #expect(key == RecoveryKey(of: Self.keyring.newest(1)))
        let next = try #require(Self.keyring.adding(Bytes32([UInt8](100..<132))!, at: 1))
        #expect(RecoveryKey(of: next) != key)
        #expect(RecoveryKey(of: Self.keyring.confined(to: [try StoreIdentifier("a")])) == nil)
        #expect(RecoveryKey(of: Keyring([:])) == nil)
        #expect(key.open(try #require(key.wrap(Self.keyring))) == Self.keyring)
    }

    @Test func `do not open if a bit is another, or a byte too few or too many`() throws {
        let box = try #require(Handover.seal(Self.keyring, of: "A", with: Self.secret))
        let wrap = try #require(Self.recovery.wrap(Self.keyring))
        for (bytes, open): ([UInt8], ([UInt8]) -> Keyring?) in [
            (box, { Handover.open($0, of: "A", with: Self.secret) }), (wrap, Self.recovery.open),
        ] {
            for index in bytes.indices {
                var changed = bytes
                changed[index] ^= 1 << UInt8(index % 8)
                #expect(open(changed) == nil, "\(index)")
                #expect(open(Array(bytes[..<index])) == nil)
            }
            #expect(open(bytes + [0]) == nil && open([]) == nil)
            #expect(open([UInt8](repeating: 1, count: 20_000)) == nil)
        }
    }

    @Test func `leave the oldest generations out where not all of them fit`() throws {
        let many = Self.keyring(Keyring.generationsMax)
        let box = try #require(Handover.seal(many, of: "A", with: Self.secret))
        let wrap = try #require(Self.recovery.wrap(many))
        #expect(box.count <= Handover.bytesMax && wrap.count <= RecoveryKey.wrapBytesMax)
        let handed = try #require(Handover.open(box, of: "A", with: Self.secret))
        let recovered = try #require(Self.recovery.open(wrap))
        for (keyring, least) in [(handed, 200), (recovered, 50)] {
            #expect(keyring.current == many.current && keyring.check == many.check)
            #expect(keyring.roots.count >= least && keyring.roots.count < 1_000)
            #expect(keyring == many.newest(keyring.roots.count))
        }
        let stores = try (0..<400).map { try StoreIdentifier("com.example.app.number\($0)") }
        let confined = Self.keyring.confined(to: Set(stores))
        #expect(Handover.seal(confined, of: "A", with: Self.secret) == nil)
        #expect(Handover.seal(Keyring([:]), of: "A", with: Self.secret) == nil)
    }

    /// What only somebody with the secret can make.
    @Test func `are no keys if they are of no generation, or no keys at all`() {
        var info = SealingFields("ubiquity handover 1")
        info.add("A".utf8)
        let keys = SealedBytes(secret: Self.secret.bytes, info: info)
        let key = PropertyListValue.string("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        for (value, opens): (PropertyListValue, Bool) in [
            (.dictionary(["1": key]), true), (.dictionary([:]), false), (key, false),
            (.dictionary(["0": key]), false), (.dictionary(["1": .string("")]), false),
        ] {
            let box = keys.seal(
                SealedText.encode(value), for: SealingFields("ubiquity handover 1"))
            #expect((Handover.open(box, of: "A", with: Self.secret) != nil) == opens)
        }
    }

    // MARK: - Printing

    @Test func `are not printed`() {
        let code = KeyCode(front: "7KQ2", secret: Self.secret)
        var printed = ""
        dump(Self.keyring, to: &printed)
        dump(Self.recovery, to: &printed)
        dump(code, to: &printed)
        var state = DeviceState()
        state.keyrings["A"] = Self.keyring
        dump(state, to: &printed)
        printed += "\(Self.keyring) \(Self.recovery) \(code) \(state)"
        for value: Any in [Self.keyring, Self.recovery, code, Self.secret, state] {
            printed += String(reflecting: value)
        }
        for bytes in [[UInt8](0..<4), [UInt8](100..<104), [UInt8](50..<54), [UInt8](200..<204)] {
            let list = bytes.map { "\($0)" }
            #expect(!printed.contains(list.joined(separator: ", ")))
            #expect(!printed.contains("- \(list[0])\n"))
        }
        #expect(!printed.contains(Self.secret.text) && !printed.contains(Self.recovery.text))
    }
}

@Suite struct `A secret that people type` {
    @Test func `has groups of four characters, and is read back`() throws {
        for first in UInt8.min...UInt8.max {
            let recovery = try #require(RecoveryKey((0..<20).map { first &+ $0 &* 11 }))
            let secret = try #require(HandoverSecret((0..<16).map { first &+ $0 &* 13 }))
            #expect(recovery.text.utf8.count == 44 && secret.text.utf8.count == 37)
            #expect(RecoveryKey(text: recovery.text) == recovery)
            #expect(HandoverSecret(text: secret.text) == secret)
            #expect(HandoverSecret(text: recovery.text) == nil)
            #expect(RecoveryKey(text: secret.text) == nil)
        }
        let zero = try #require(RecoveryKey([UInt8](repeating: 0, count: 20)))
        #expect(zero.text == "0000-0000-0000-0000-0000-0000-0000-0000-0000")
        #expect(RecoveryKey([1]) == nil && HandoverSecret([]) == nil)
    }

    @Test func `is read as people type it`() throws {
        let key = try #require(RecoveryKey([0, 0x44, 0x32] + [UInt8](1...17)))
        let text = key.text
        #expect(text.hasPrefix("0123-"))
        for typed in [
            text.lowercased(), "OI23" + text.dropFirst(4), "ol23" + text.dropFirst(4),
            text.filter { $0 != "-" }, "  " + text.map { "\($0) " }.joined() + "\n",
        ] {
            #expect(RecoveryKey(text: typed) == key, "\(typed)")
        }
        for wrong in [
            "", "-", String(text.dropLast()), text + "0", text + "é", "U" + text.dropFirst(),
            "é" + text.dropFirst(), text + String(repeating: " ", count: 300),
            String(repeating: "0", count: 1_000_000), "\0" + text,
        ] {
            #expect(RecoveryKey(text: wrong) == nil)
        }
    }

    @Test func `shows each wrong character, and each two that were exchanged`() throws {
        let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
        for seed: UInt8 in [1, 77, 200] {
            let key = try #require(RecoveryKey((0..<20).map { seed &+ $0 &* 37 }))
            let right = key.text.filter { $0 != "-" }.map { $0 }
            for index in right.indices {
                for character in alphabet where character != right[index] {
                    var wrong = right
                    wrong[index] = character
                    #expect(RecoveryKey(text: String(wrong)) == nil, "\(index) \(character)")
                }
                for other in right.indices where right[other] != right[index] {
                    var wrong = right
                    wrong.swapAt(index, other)
                    #expect(RecoveryKey(text: String(wrong)) == nil, "\(index) \(other)")
                }
            }
        }
    }
}

@Suite struct `A code that is scanned or pasted` {
    private static let secret = HandoverSecret([UInt8](0..<16))!

    @Test(arguments: [
        "7KQ2-M9XD-4TRW", "https://ubiquity.example#7KQ2-M9XD-4TRW", "0123456789abcdef",
        "https://192.168.0.2:8443#7KQ2;sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ])
    func `is what it was without a secret, and carries one`(front: String) throws {
        let plain = try #require(KeyCode(front))
        #expect(plain == KeyCode(front: front, secret: nil) && plain.text == front)
        let code = KeyCode(front: front, secret: Self.secret)
        #expect(code.text.hasPrefix("ubiquity:\(front);"))
        #expect(KeyCode(code.text) == code)
        #expect(KeyCode("UBIQUITY:" + code.text.dropFirst(9)) == code)
        // Of the code alone, nothing gives a server's address a secret.
        #expect(!code.front.contains(Self.secret.text))
    }

    @Test func `is not taken for one without a secret if the secret is damaged`() {
        let text = KeyCode(front: "7KQ2", secret: Self.secret).text
        for index in 1..<text.utf8.count {
            let cut = String(text.prefix(index))
            // So short that it does not begin as one.
            #expect((KeyCode(cut)?.secret == nil) && (index < 9 || KeyCode(cut) == nil), "\(cut)")
        }
        for wrong in [
            "", "ubiquity:", "ubiquity:;", "ubiquity:;\(Self.secret.text)", "ubiquity:7KQ2",
            "ubiquity:7KQ2;", "ubiquity:7KQ2;0000", "ubiquity;", text + ";", text + "\u{301}",
            "ubiquity:" + String(repeating: ";", count: 3_000),
            String(repeating: "x", count: 4_097),
        ] where wrong != "ubiquity;" {
            #expect(KeyCode(wrong) == nil, "\(wrong.prefix(60))")
        }
        #expect(KeyCode("ubiquity;")?.secret == nil)
    }

    @Test func `a locked device asks for the keys of its stores by its code`() throws {
        let (a, b) = (try StoreIdentifier("TEAM.example.a"), try StoreIdentifier("b"))
        for (stores, front) in [([], "unlock"), ([a, b], "unlock#TEAM.example.a,b")] {
            let asked = UnlockRequest(stores: stores)
            #expect(asked.front == front && UnlockRequest(front: front) == asked)
        }
        for front in ["", "unloc", "unlocked", "unlock#", "unlock#,", "unlock#a b", "7KQ2-M9XD"] {
            #expect(UnlockRequest(front: front) == nil, "\(front)")
        }
        let keyring = Keyring([1: .account(Bytes32([UInt8](0..<32))!)])
        #expect(UnlockRequest(stores: []).keys(of: keyring) == keyring)
        let confined = keyring.confined(to: [a])
        #expect(UnlockRequest(stores: [a]).keys(of: keyring) == confined)
        #expect(UnlockRequest(stores: [a]).keys(of: confined) == confined)
        // It would be locked for ever by keys that are of no store.
        #expect(UnlockRequest(stores: [b]).keys(of: confined) == nil)
        #expect(UnlockRequest(stores: [a, b]).keys(of: confined) == nil)
        let empty = try #require(
            Handover.seal(confined.confined(to: [b]), of: "account", with: Self.secret))
        #expect(Handover.open(empty, of: "account", with: Self.secret) == nil)
    }

    @Test func `a secret without its code is known as one, and no code is`() throws {
        let recovery = try #require(RecoveryKey([UInt8](0..<20)))
        for secret in [Self.secret.text, recovery.text, recovery.text.lowercased()] {
            #expect(try #require(KeyCode(secret)).isSecretAlone, "\(secret.count)")
        }
        for code in [
            "7KQ2-M9XD-4TRW", "https://s#7KQ2", "ubiquity:unlock;" + Self.secret.text,
            String(repeating: "7", count: 36),
        ] { #expect(try !#require(KeyCode(code)).isSecretAlone, "\(code)") }
    }
}
