// SPDX-License-Identifier: Apache-2.0

/// The stream cipher ChaCha20 (RFC 8439): additions, rotations and exclusive or of the same words
/// for every key, and no table.
struct ChaCha20: Sendable {
    private let key: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32, UInt32)
    private let nonce: (UInt32, UInt32, UInt32)
    private var counter: UInt32

    private static let blockBytes = 64

    /// - Parameters:
    ///   - nonce: Its three words; zero for a key that is used once.
    ///   - counter: The number of the first block.
    init(
        key: Bytes32, nonce: (UInt32, UInt32, UInt32) = (0, 0, 0), counter: UInt32 = 0
    ) {
        self.key = key.bytes.withUnsafeBytes { bytes in
            func word(_ index: Int) -> UInt32 {
                UInt32(
                    littleEndian: bytes.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self))
            }
            return (word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7))
        }
        self.nonce = nonce
        self.counter = counter
    }

    /// Encrypts the bytes, or decrypts them, which is the same. The next call goes on with the block
    /// after the last one. At most 256 GB.
    mutating func apply(to bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { bytes in
            withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 16) { stream in
                var offset = 0
                while offset < bytes.count {
                    block(stream)
                    counter &+= 1
                    Self.xor(bytes, at: offset, UnsafeRawBufferPointer(stream))
                    offset += Self.blockBytes
                }
            }
        }
    }

    private static func xor(
        _ bytes: UnsafeMutableRawBufferPointer, at offset: Int, _ stream: UnsafeRawBufferPointer
    ) {
        guard bytes.count - offset >= blockBytes else {
            for index in 0..<(bytes.count - offset) { bytes[offset + index] ^= stream[index] }
            return
        }
        var index = 0
        while index < blockBytes {
            defer { index &+= 8 }
            let text = bytes.loadUnaligned(fromByteOffset: offset + index, as: UInt64.self)
            let mask = stream.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            bytes.storeBytes(of: text ^ mask, toByteOffset: offset + index, as: UInt64.self)
        }
    }

    /// Writes the block of this counter, as it is in memory.
    private func block(_ stream: UnsafeMutableBufferPointer<UInt32>) {
        var a = (UInt32(0x6170_7865), UInt32(0x3320_646E), UInt32(0x7962_2D32), UInt32(0x6B20_6574))
        var b = (key.0, key.1, key.2, key.3)
        var c = (key.4, key.5, key.6, key.7)
        var d = (counter, nonce.0, nonce.1, nonce.2)
        let (a0, b0, c0, d0) = (a, b, c, d)
        var round = 0
        while round < 10 {
            round &+= 1
            Self.quarter(&a.0, &b.0, &c.0, &d.0)
            Self.quarter(&a.1, &b.1, &c.1, &d.1)
            Self.quarter(&a.2, &b.2, &c.2, &d.2)
            Self.quarter(&a.3, &b.3, &c.3, &d.3)
            Self.quarter(&a.0, &b.1, &c.2, &d.3)
            Self.quarter(&a.1, &b.2, &c.3, &d.0)
            Self.quarter(&a.2, &b.3, &c.0, &d.1)
            Self.quarter(&a.3, &b.0, &c.1, &d.2)
        }
        Self.put(a, a0, stream, 0)
        Self.put(b, b0, stream, 4)
        Self.put(c, c0, stream, 8)
        Self.put(d, d0, stream, 12)
    }

    private typealias Row = (UInt32, UInt32, UInt32, UInt32)

    @inline(__always)
    private static func put(
        _ row: Row, _ first: Row, _ stream: UnsafeMutableBufferPointer<UInt32>, _ index: Int
    ) {
        stream[index] = (row.0 &+ first.0).littleEndian
        stream[index + 1] = (row.1 &+ first.1).littleEndian
        stream[index + 2] = (row.2 &+ first.2).littleEndian
        stream[index + 3] = (row.3 &+ first.3).littleEndian
    }

    @inline(__always)
    private static func quarter(
        _ a: inout UInt32, _ b: inout UInt32, _ c: inout UInt32, _ d: inout UInt32
    ) {
        a &+= b
        d = (d ^ a).rotated(16)
        c &+= d
        b = (b ^ c).rotated(12)
        a &+= b
        d = (d ^ a).rotated(8)
        c &+= d
        b = (b ^ c).rotated(7)
    }
}
