// SPDX-License-Identifier: Apache-2.0

internal import Crypto

/// The last file of an archive: the SHA-256 digest of each file before it, one per line, in the
/// format of `sha256sum`.
struct ArchiveDigests: Hashable, Sendable {
    static let fileName = "SHA256SUMS"
    /// Enough for the maximum number of files in an archive.
    static let bytesMax = TarReader.membersMax * (64 + 2 + 255 + 1)

    /// The digests by file name.
    private(set) var digests: [String: String] = [:]

    init() {}

    mutating func add(_ name: String, _ hash: SHA256) { digests[name] = Self.text(of: hash) }

    mutating func add(_ name: String, content: [UInt8]) { add(name, Self.hash(of: content)) }

    /// Whether the file is unchanged since the archive was made.
    func match(_ name: String, _ content: [UInt8]) -> Bool {
        digests[name] == Self.text(of: Self.hash(of: content))
    }

    private static func hash(of content: [UInt8]) -> SHA256 {
        var hash = SHA256()
        content.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return hash
    }

    var content: [UInt8] {
        digests.sorted { $0.key < $1.key }.flatMap { Array("\($0.value)  \($0.key)\n".utf8) }
    }

    /// Fails for bytes that are not such a list.
    init?(content: [UInt8]) {
        guard content.count <= Self.bytesMax else { return nil }
        for line in content.split(separator: UInt8(ascii: "\n")) {
            let text = String(decoding: line, as: UTF8.self)
            let digest = String(text.prefix(64))
            guard digest.utf8.count == 64, text.dropFirst(64).hasPrefix("  ") else { return nil }
            let name = String(text.dropFirst(66))
            guard digests.updateValue(digest, forKey: name) == nil else { return nil }
        }
    }

    private static func text(of hash: SHA256) -> String {
        let letters = Array("0123456789abcdef".utf8)
        let bytes = hash.finalize().flatMap { [letters[Int($0 >> 4)], letters[Int($0 & 0xF)]] }
        return String(decoding: bytes, as: UTF8.self)
    }
}
