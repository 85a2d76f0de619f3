// SPDX-License-Identifier: Apache-2.0

/// The hash function SHA-256 (FIPS 180-4), taken in pieces.
///
/// Which instructions run, and which memory they touch, depends on the number of bytes alone. The
/// one table is that of the constants, which each block reads from its beginning to its end.
struct SHA256: Sendable {
    private var state = (
        a: UInt32(0x6A09_E667), b: UInt32(0xBB67_AE85), c: UInt32(0x3C6E_F372),
        d: UInt32(0xA54F_F53A), e: UInt32(0x510E_527F), f: UInt32(0x9B05_688C),
        g: UInt32(0x1F83_D9AB), h: UInt32(0x5BE0_CD19)
    )
    /// The bytes of the block that is not complete.
    private var pending: [UInt8] = []
    private var count: UInt64 = 0

    static let blockBytes = 64

    init() {}

    /// The hash of these bytes.
    static func hash(_ bytes: [UInt8]) -> Bytes32 {
        var hash = SHA256()
        hash.update(bytes)
        return hash.finalized()
    }

    mutating func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { update($0) }
    }

    private mutating func update(_ bytes: UnsafeRawBufferPointer) {
        count &+= UInt64(bytes.count)
        var offset = 0
        if !pending.isEmpty {
            offset = min(Self.blockBytes - pending.count, bytes.count)
            pending += bytes[..<offset]
            guard pending.count == Self.blockBytes else { return }
            let block = pending
            pending = []
            block.withUnsafeBytes { compress($0, at: 0) }
        }
        while bytes.count - offset >= Self.blockBytes {
            compress(bytes, at: offset)
            offset += Self.blockBytes
        }
        pending += bytes[offset...]
    }

    /// The hash of everything so far, which more bytes may follow.
    func finalized() -> Bytes32 {
        var rest = self
        var end = [0x80] + [UInt8](repeating: 0, count: (119 - Int(count % 64)) % 64)
        end.append(bigEndian: count &* 8)
        rest.update(end)
        let state = rest.state
        var hash: [UInt8] = []
        hash.reserveCapacity(Bytes32.count)
        for word in [
            state.a, state.b, state.c, state.d, state.e, state.f, state.g, state.h,
        ] {
            hash.append(bigEndian: word)
        }
        return Bytes32(unchecked: hash)
    }

    private mutating func compress(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { words in
            var index = 0
            while index < 16 {
                let word = bytes.loadUnaligned(fromByteOffset: offset + 4 * index, as: UInt32.self)
                words[index] = UInt32(bigEndian: word)
                index &+= 1
            }
            while index < 64 {
                let (early, late) = (words[index - 15], words[index - 2])
                let first = early.rotated(25) ^ early.rotated(14) ^ early &>> 3
                let second = late.rotated(15) ^ late.rotated(13) ^ late &>> 10
                words[index] = words[index - 16] &+ first &+ words[index - 7] &+ second
                index &+= 1
            }
            rounds(UnsafeBufferPointer(words))
        }
    }

    private mutating func rounds(_ words: UnsafeBufferPointer<UInt32>) {
        var (a, b, c, d, e, f, g, h) = state
        Self.constants.withUnsafeBufferPointer { constants in
            var index = 0
            while index < 64 {
                let choice = e & f ^ ~e & g
                let majority = a & b ^ a & c ^ b & c
                let first =
                    h &+ (e.rotated(26) ^ e.rotated(21) ^ e.rotated(7)) &+ choice
                    &+ constants[index] &+ words[index]
                let second = (a.rotated(30) ^ a.rotated(19) ^ a.rotated(10)) &+ majority
                (h, g, f, e) = (g, f, e, d &+ first)
                (d, c, b, a) = (c, b, a, first &+ second)
                index &+= 1
            }
        }
        state = (
            state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d,
            state.e &+ e, state.f &+ f, state.g &+ g, state.h &+ h
        )
    }

    private static let constants: [UInt32] = [
        0x428A_2F98, 0x7137_4491, 0xB5C0_FBCF, 0xE9B5_DBA5, 0x3956_C25B, 0x59F1_11F1, 0x923F_82A4,
        0xAB1C_5ED5, 0xD807_AA98, 0x1283_5B01, 0x2431_85BE, 0x550C_7DC3, 0x72BE_5D74, 0x80DE_B1FE,
        0x9BDC_06A7, 0xC19B_F174, 0xE49B_69C1, 0xEFBE_4786, 0x0FC1_9DC6, 0x240C_A1CC, 0x2DE9_2C6F,
        0x4A74_84AA, 0x5CB0_A9DC, 0x76F9_88DA, 0x983E_5152, 0xA831_C66D, 0xB003_27C8, 0xBF59_7FC7,
        0xC6E0_0BF3, 0xD5A7_9147, 0x06CA_6351, 0x1429_2967, 0x27B7_0A85, 0x2E1B_2138, 0x4D2C_6DFC,
        0x5338_0D13, 0x650A_7354, 0x766A_0ABB, 0x81C2_C92E, 0x9272_2C85, 0xA2BF_E8A1, 0xA81A_664B,
        0xC24B_8B70, 0xC76C_51A3, 0xD192_E819, 0xD699_0624, 0xF40E_3585, 0x106A_A070, 0x19A4_C116,
        0x1E37_6C08, 0x2748_774C, 0x34B0_BCB5, 0x391C_0CB3, 0x4ED8_AA4A, 0x5B9C_CA4F, 0x682E_6FF3,
        0x748F_82EE, 0x78A5_636F, 0x84C8_7814, 0x8CC7_0208, 0x90BE_FFFA, 0xA450_6CEB, 0xBEF9_A3F7,
        0xC671_78F2,
    ]
}

extension UInt32 {
    /// Rotated to the left by 1 to 31 bits.
    @inline(__always)
    func rotated(_ bits: UInt32) -> UInt32 { self &<< bits | self &>> (32 &- bits) }
}
