// SPDX-License-Identifier: Apache-2.0

/// HMAC-SHA-256 (RFC 2104, FIPS 198-1), taken in pieces. A copy of one that has taken nothing yet
/// saves the two blocks of the key.
struct HMAC: Sendable {
    private var inner = SHA256()
    private var outer = SHA256()

    /// - Parameter key: Of any length.
    init(key: [UInt8]) {
        let short = key.count > SHA256.blockBytes ? SHA256.hash(key).bytes : key
        let padded = short + [UInt8](repeating: 0, count: SHA256.blockBytes - short.count)
        inner.update(padded.map { $0 ^ 0x36 })
        outer.update(padded.map { $0 ^ 0x5C })
    }

    mutating func update(_ bytes: [UInt8]) { inner.update(bytes) }

    /// The code of everything so far.
    func finalized() -> Bytes32 {
        var outer = outer
        outer.update(inner.finalized().bytes)
        return outer.finalized()
    }

    /// The code of these bytes after everything so far.
    func code(of bytes: [UInt8]) -> Bytes32 {
        var code = self
        code.update(bytes)
        return code.finalized()
    }
}

/// HKDF-SHA-256 (RFC 5869).
enum HKDF {
    /// Derives as many blocks of 32 bytes as asked for, at most 255.
    static func derive(
        from secret: [UInt8], salt: [UInt8] = [], info: [UInt8], blocks: UInt8 = 1
    ) -> [Bytes32] {
        let key = HMAC(key: HMAC(key: salt).code(of: secret).bytes)
        var derived: [Bytes32] = []
        var last: [UInt8] = []
        for number in 0..<blocks {
            let block = key.code(of: last + info + [number + 1])
            derived.append(block)
            last = block.bytes
        }
        return derived
    }
}
