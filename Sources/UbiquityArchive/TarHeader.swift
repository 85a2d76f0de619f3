// SPDX-License-Identifier: Apache-2.0

/// The 512-byte block before each member of a tar archive, in POSIX format ("ustar").
///
/// Numbers are octal text: the mode at 100, the size at 124, the time at 136, and at 148 the sum of
/// all bytes of the block, for which the sum's own eight bytes count as blanks. The kind is at 156,
/// the format's name at 257, and at 345 a prefix for the name at 0.
struct TarHeader: Hashable {
    /// As stored, see ``TarName``.
    var name: [UInt8]
    var size: Int
    /// Seconds since 1970. Not read.
    var time: Int64 = 0
    var kind = Kind.file.rawValue

    enum Kind: UInt8 {
        case file = 0x30
        /// Used for files by the oldest programs.
        case oldFile = 0
        case folder = 0x35
        /// Extended headers (pax) for the next member, or for all.
        case extended = 0x78
        case extendedGlobal = 0x67
    }

    static let blockBytes = 512
    static let nameBytesMax = 100
    /// In the year 2242.
    private static let timeMax: Int64 = 0o777_7777_7777
    private static let magic = Array("ustar".utf8)
    private static let sumRange = 148..<156

    /// The size of a member's content with its padding, in bytes.
    static func paddedBytes(_ size: Int) -> Int {
        (size + blockBytes - 1) / blockBytes * blockBytes
    }

    /// Whether bytes begin like a tar archive of any modern program.
    static func isTar(_ bytes: some RandomAccessCollection<UInt8>) -> Bool {
        bytes.count >= blockBytes && bytes.dropFirst(257).prefix(5).elementsEqual(magic)
    }

    var block: [UInt8] {
        precondition(name.count <= Self.nameBytesMax, "A member's name is too long.")
        var block = [UInt8](repeating: 0, count: Self.blockBytes)
        func put(_ bytes: some Sequence<UInt8>, at offset: Int) {
            for (index, byte) in bytes.enumerated() { block[offset + index] = byte }
        }
        put(name, at: 0)
        put(Self.octal(0o600, digits: 7), at: 100)
        put(Self.octal(0, digits: 7), at: 108)
        put(Self.octal(0, digits: 7), at: 116)
        put(Self.octal(size, digits: 11), at: 124)
        // A clock that is wrong by centuries must not crash a server.
        put(Self.octal(Int(min(max(0, time), Self.timeMax)), digits: 11), at: 136)
        block[156] = kind
        put(Self.magic + [0] + Array("00".utf8), at: 257)
        put(
            Self.octal(Self.sum(of: block[...]), digits: 6) + [0, 0x20],
            at: Self.sumRange.lowerBound)
        return block
    }

    /// - Parameter offset: The offset of the block, for the error.
    /// - Throws: ``ArchiveError/headerDamaged(offset:)``.
    init(_ block: ArraySlice<UInt8>, offset: Int) throws(ArchiveError) {
        let start = block.startIndex
        func field(_ range: Range<Int>) -> ArraySlice<UInt8> {
            block[(start + range.lowerBound)..<(start + range.upperBound)]
        }
        guard block.count == Self.blockBytes, field(257..<262).elementsEqual(Self.magic),
            let sum = Self.number(field(Self.sumRange)), sum == Self.sum(of: block),
            let size = Self.number(field(124..<136))
        else { throw .headerDamaged(offset: offset) }
        // Not in GNU's own format, which has other data there.
        let isPOSIX = block[start + 262] == 0
        let prefix = isPOSIX ? field(345..<500).prefix { $0 != 0 } : []
        let last = field(0..<100).prefix { $0 != 0 }
        name = prefix.isEmpty ? Array(last) : Array(prefix) + [UInt8(ascii: "/")] + last
        self.size = size
        kind = block[start + 156]
    }

    init(name: String, size: Int, time: Int64) {
        self.name = Array(name.utf8)
        self.size = size
        self.time = time
    }

    private static func octal(_ number: Int, digits: Int) -> [UInt8] {
        let text = String(number, radix: 8)
        precondition(text.utf8.count <= digits, "A number is too large for a tar archive.")
        return Array(repeating: UInt8(ascii: "0"), count: digits - text.utf8.count) + text.utf8
    }

    /// Nil for anything except octal digits between blanks. Sizes of 8 GB and more have another
    /// format.
    private static func number(_ field: ArraySlice<UInt8>) -> Int? {
        let text = field.drop { $0 == 0x20 }.prefix { $0 != 0x20 && $0 != 0 }
        guard (1...12).contains(text.count) else { return nil }
        return Int(String(decoding: text, as: UTF8.self), radix: 8).flatMap { $0 < 0 ? nil : $0 }
    }

    private static func sum(of block: ArraySlice<UInt8>) -> Int {
        zip(0..., block).reduce(0) { $0 + (sumRange.contains($1.0) ? 0x20 : Int($1.1)) }
    }
}
