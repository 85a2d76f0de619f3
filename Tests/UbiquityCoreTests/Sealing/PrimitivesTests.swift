// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import UbiquityCore

@Suite struct `Hashing, deriving keys and encrypting` {
    @Test func `give the hashes of FIPS 180-4`() {
        let long = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
        let texts = [
            "": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "abc": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq":
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            long + "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu":
                "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
            String(repeating: "a", count: 1_000_000):
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
        ]
        for (text, hash) in texts { #expect(SHA256.hash(Array(text.utf8)).bytes == bytes(hash)) }
    }

    /// The hash of the hashes of 300 messages, as Python's hashlib gives it.
    @Test func `give the same for each length around the borders of blocks, in any pieces`() {
        var all = SHA256()
        for count in 0..<300 {
            let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + count) }
            let hash = SHA256.hash(message)
            all.update(hash.bytes)
            for piece in [1, 3, 55, 63, 64, 65, 128] {
                var pieces = SHA256()
                for start in stride(from: 0, to: count, by: piece) {
                    pieces.update(Array(message[start..<min(start + piece, count)]))
                }
                if pieces.finalized() != hash { Issue.record("\(count) in pieces of \(piece)") }
            }
        }
        #expect(
            all.finalized().bytes
                == bytes("d5238871a46ac4a1a75ac3fb19d645b0b3b9e5f35f5f720e2b240d605c6b694e"))
    }

    @Test func `give the codes of RFC 4231`() {
        func code(_ key: [UInt8], _ data: [UInt8]) -> [UInt8] {
            HMAC(key: key).code(of: data).bytes
        }
        #expect(
            code(repeated(0x0B, 20), Array("Hi There".utf8))
                == bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"))
        #expect(
            code(Array("Jefe".utf8), Array("what do ya want for nothing?".utf8))
                == bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"))
        #expect(
            code(repeated(0xAA, 20), repeated(0xDD, 50))
                == bytes("773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"))
        #expect(
            code([UInt8](1...25), repeated(0xCD, 50))
                == bytes("82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"))
        let first = "Test Using Larger Than Block-Size Key - Hash Key First"
        #expect(
            code(repeated(0xAA, 131), Array(first.utf8))
                == bytes("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"))
        let last =
            "This is a test using a larger than block-size key and a larger than block-size data. "
            + "The key needs to be hashed before being used by the HMAC algorithm."
        #expect(
            code(repeated(0xAA, 131), Array(last.utf8))
                == bytes("9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"))
    }

    @Test func `give the keys of RFC 5869`() {
        func derived(
            _ secret: [UInt8], _ salt: [UInt8], _ info: [UInt8], _ count: Int
        ) -> [UInt8] {
            let blocks = UInt8((count + 31) / 32)
            let keys = HKDF.derive(from: secret, salt: salt, info: info, blocks: blocks)
            return Array(keys.flatMap(\.bytes).prefix(count))
        }
        #expect(
            derived(repeated(0x0B, 22), [UInt8](0...12), [UInt8](0xF0...0xF9), 42)
                == bytes(
                    "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208"
                        + "d5b887185865"))
        #expect(
            derived([UInt8](0x00...0x4F), [UInt8](0x60...0xAF), [UInt8](0xB0...0xFF), 82)
                == bytes(
                    "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99"
                        + "cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87"
                        + "c14c01d5c1f3434f1d87"))
        #expect(
            derived(repeated(0x0B, 22), [], [], 42)
                == bytes(
                    "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395"
                        + "faa4b61a96c8"))
    }

    @Test func `give the streams of RFC 8439`() throws {
        func stream(_ key: [UInt8], _ cipher: (Bytes32) -> ChaCha20, _ text: [UInt8]) throws
            -> [UInt8]
        {
            var cipher = cipher(try #require(Bytes32(key)))
            var text = text
            cipher.apply(to: &text)
            return text
        }
        let key = [UInt8](0...31)
        #expect(
            try stream(
                key, { ChaCha20(key: $0, nonce: (0x0900_0000, 0x4A00_0000, 0), counter: 1) },
                repeated(0, 64))
                == bytes(
                    "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
                        + "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"))
        let text =
            "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            + "future, sunscreen would be it."
        #expect(
            try stream(
                key, { ChaCha20(key: $0, nonce: (0, 0x4A00_0000, 0), counter: 1) },
                Array(text.utf8))
                == bytes(
                    "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0bf91b65c5524733ab"
                        + "8f593dabcd62b3571639d624e65152ab8f530c359f0861d807ca0dbf500d6a6156a38e088a22b65e"
                        + "52bc514d16ccf806818ce91ab77937365af90bbf74a35be6b40b8eedf2785e42874d"))
        #expect(
            try stream(repeated(0, 32), { ChaCha20(key: $0) }, repeated(0, 64))
                == bytes(
                    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
                        + "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"))
    }

    @Test func `find keys the same only if all of their bytes are, and print none`() throws {
        let key = try #require(Bytes32([UInt8](0...31)))
        for index in 0..<32 {
            for bit in 0..<8 {
                var other = key.bytes
                other[index] ^= 1 << UInt8(bit)
                #expect(Bytes32(other) != key)
            }
        }
        #expect(Bytes32([UInt8](0...31)) == key)
        #expect(Bytes32([UInt8](0...30)) == nil && Bytes32([UInt8](0...32)) == nil)
        #expect("\(key) \([key])" == "32 bytes [32 bytes]")
    }

    private func repeated(_ byte: UInt8, _ count: Int) -> [UInt8] {
        [UInt8](repeating: byte, count: count)
    }
}

/// The bytes of hexadecimal digits.
func bytes(_ digits: String) -> [UInt8] {
    let digits = Array(digits.utf8)
    return stride(from: 0, to: digits.count - 1, by: 2).map { index in
        UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16) ?? 0
    }
}
