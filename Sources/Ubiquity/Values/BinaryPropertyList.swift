// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Checks a binary property list before Foundation reads it.
///
/// Its objects refer to others by number, and several may refer to the same one. Values cannot
/// share. In 200 bytes, forty arrays that each contain the next one twice expand to a million
/// million parts, and Foundation on Linux expands them all even when asked for one. It also traps
/// on a set, which the format has but property lists do not.
///
/// The file ends with 32 bytes: the size of an offset at 6, the size of a reference at 7, the
/// number of objects at 8, the root at 16, and the place of the offset table at 24.
struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetBytes: Int
    private let referenceBytes: Int
    private let count: Int
    private let root: Int
    private let table: Int
    /// The expanded size of each visited object; nil while it is being visited.
    private var sizes: [Int: Int?] = [:]

    /// The maximum expanded size in bytes: far more than a store can hold.
    private static let valueBytesMax = 96 << 20
    /// The approximate overhead of a value, in bytes.
    private static let partBytes = 64
    /// Foundation accepts at most 512.
    private static let depthMax = 600
    private static let trailerBytes = 32

    /// - Throws: ``UnsupportedValue`` for a binary property list that must not be read. Anything
    ///   else is left to Foundation.
    static func check(_ data: Data) throws(UnsupportedValue) {
        guard data.starts(with: "bplist".utf8), data.count > trailerBytes else { return }
        var list = try BinaryPropertyList([UInt8](data))
        _ = try list.size(of: list.root, depth: 1)
    }

    private init(_ bytes: [UInt8]) throws(UnsupportedValue) {
        self.bytes = bytes
        let trailer = bytes.count - Self.trailerBytes
        offsetBytes = Int(bytes[trailer + 6])
        referenceBytes = Int(bytes[trailer + 7])
        func number(_ offset: Int) throws(UnsupportedValue) -> Int {
            try Self.number(bytes[(trailer + offset)..<(trailer + offset + 8)])
        }
        count = try number(8)
        root = try number(16)
        table = try number(24)
    }

    /// The expanded size of an object, in bytes.
    private mutating func size(of object: Int, depth: Int) throws(UnsupportedValue) -> Int {
        if let known = sizes[object] {
            guard let size = known else { throw Self.broken }
            return size
        }
        guard depth <= Self.depthMax else { throw .tooDeep }
        sizes[object] = .some(nil)
        let size = try sizeOfUnknown(object, depth: depth)
        sizes[object] = size
        return size
    }

    private mutating func sizeOfUnknown(
        _ object: Int, depth: Int
    ) throws(UnsupportedValue) -> Int {
        let start = try offset(of: object)
        switch try byte(start) >> 4 {
        case 0x4, 0x5: return Self.partBytes + (try content(at: start).count)
        case 0x6: return Self.partBytes + 2 * (try content(at: start).count)
        case 0xA: return try sizeOfContainer(at: start, references: 1, depth: depth)
        case 0xD: return try sizeOfContainer(at: start, references: 2, depth: depth)
        case 0xB, 0xC: throw .type(of: NSSet())
        default: return Self.partBytes
        }
    }

    private mutating func sizeOfContainer(
        at start: Int, references: Int, depth: Int
    ) throws(UnsupportedValue) -> Int {
        let content = try content(at: start)
        var size = Self.partBytes
        for index in 0..<(content.count * references) {
            let reference = try number(content.start + index * referenceBytes, referenceBytes)
            size += try self.size(of: reference, depth: depth + 1)
            guard size <= Self.valueBytesMax else { throw Self.tooLarge }
        }
        return size
    }

    /// The number of an object's elements and where they begin. The lower half of its first byte is
    /// the number, or 15 if an integer with the number follows.
    private func content(at start: Int) throws(UnsupportedValue) -> (count: Int, start: Int) {
        let low = Int(try byte(start) & 0xF)
        guard low == 0xF else { return (low, start + 1) }
        let type = try byte(start + 1)
        guard type >> 4 == 1, type & 0xF <= 3 else { throw Self.broken }
        let countBytes = 1 << Int(type & 0xF)
        let count = try number(start + 2, countBytes)
        // Each element takes at least a byte.
        guard count <= bytes.count else { throw Self.broken }
        return (count, start + 2 + countBytes)
    }

    private func offset(of object: Int) throws(UnsupportedValue) -> Int {
        guard object < count, object < bytes.count else { throw Self.broken }
        return try number(table + object * offsetBytes, offsetBytes)
    }

    private func byte(_ offset: Int) throws(UnsupportedValue) -> UInt8 {
        guard bytes.indices.contains(offset) else { throw Self.broken }
        return bytes[offset]
    }

    private func number(_ offset: Int, _ size: Int) throws(UnsupportedValue) -> Int {
        guard size > 0, offset <= bytes.count - size else { throw Self.broken }
        return try Self.number(bytes[offset..<(offset + size)])
    }

    /// Reads the last eight bytes of a longer number, as Foundation does. No offset in a file needs
    /// more than six.
    private static func number(_ bytes: ArraySlice<UInt8>) throws(UnsupportedValue) -> Int {
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard number < 1 << 48 else { throw broken }
        return Int(number)
    }

    private static let broken = UnsupportedValue("its parts do not fit together")
    private static let tooLarge = UnsupportedValue(
        "it takes more than 96 MB, where what stands in several places counts in each")
}
