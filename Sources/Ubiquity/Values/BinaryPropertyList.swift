// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The binary form of a property list, as far as it must be known before Foundation reads it.
///
/// Its objects refer to others by number, and several may refer to the same one. Values share
/// nothing: in 200 bytes, forty arrays that each have the next one twice are a value of a million
/// million parts, which Foundation on Linux writes out too when it is asked for one of them. And it
/// ends the process where a set is asked for, which no property list has, but the form does.
///
/// The file ends with 32 bytes: at 6 the size of an offset, at 7 that of a reference, at 8 the count
/// of the objects, at 16 the root, at 24 where the table of the offsets begins.
struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetBytes: Int
    private let referenceBytes: Int
    private let count: Int
    private let root: Int
    private let table: Int
    /// What each object that was looked at is as a value; nil: it is being looked at.
    private var sizes: [Int: Int?] = [:]

    /// How much a file may be as values, in bytes: far more than a store can hold.
    private static let valueBytesMax = 96 << 20
    /// What a value takes besides its payload, roughly.
    private static let partBytes = 64
    /// Foundation takes no more than 512.
    private static let depthMax = 600
    private static let trailerBytes = 32

    /// - Throws: ``NotPropertyList`` for a binary property list that must not be read. Anything else
    ///   is Foundation's to judge.
    static func check(_ data: Data) throws(NotPropertyList) {
        guard data.starts(with: "bplist".utf8), data.count > trailerBytes else { return }
        var list = try BinaryPropertyList([UInt8](data))
        _ = try list.size(of: list.root, depth: 1)
    }

    private init(_ bytes: [UInt8]) throws(NotPropertyList) {
        self.bytes = bytes
        let trailer = bytes.count - Self.trailerBytes
        offsetBytes = Int(bytes[trailer + 6])
        referenceBytes = Int(bytes[trailer + 7])
        func number(_ offset: Int) throws(NotPropertyList) -> Int {
            try Self.number(bytes[(trailer + offset)..<(trailer + offset + 8)])
        }
        count = try number(8)
        root = try number(16)
        table = try number(24)
    }

    /// What an object takes as a value, in bytes.
    private mutating func size(of object: Int, depth: Int) throws(NotPropertyList) -> Int {
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
    ) throws(NotPropertyList) -> Int {
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
    ) throws(NotPropertyList) -> Int {
        let content = try content(at: start)
        var size = Self.partBytes
        for index in 0..<(content.count * references) {
            let reference = try number(content.start + index * referenceBytes, referenceBytes)
            size += try self.size(of: reference, depth: depth + 1)
            guard size <= Self.valueBytesMax else { throw Self.tooLarge }
        }
        return size
    }

    /// How many elements an object has and where they begin: the lower half of its first byte is
    /// their count, or 15, and then an integer follows that is.
    private func content(at start: Int) throws(NotPropertyList) -> (count: Int, start: Int) {
        let low = Int(try byte(start) & 0xF)
        guard low == 0xF else { return (low, start + 1) }
        let type = try byte(start + 1)
        guard type >> 4 == 1, type & 0xF <= 3 else { throw Self.broken }
        let countBytes = 1 << Int(type & 0xF)
        let count = try number(start + 2, countBytes)
        // No element takes less than a byte.
        guard count <= bytes.count else { throw Self.broken }
        return (count, start + 2 + countBytes)
    }

    private func offset(of object: Int) throws(NotPropertyList) -> Int {
        guard object < count, object < bytes.count else { throw Self.broken }
        return try number(table + object * offsetBytes, offsetBytes)
    }

    private func byte(_ offset: Int) throws(NotPropertyList) -> UInt8 {
        guard bytes.indices.contains(offset) else { throw Self.broken }
        return bytes[offset]
    }

    private func number(_ offset: Int, _ size: Int) throws(NotPropertyList) -> Int {
        guard size > 0, offset <= bytes.count - size else { throw Self.broken }
        return try Self.number(bytes[offset..<(offset + size)])
    }

    /// Of more than eight bytes the last eight, as Foundation reads it. Nothing in a file is as far
    /// away as what needs more than six.
    private static func number(_ bytes: ArraySlice<UInt8>) throws(NotPropertyList) -> Int {
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard number < 1 << 48 else { throw broken }
        return Int(number)
    }

    private static let broken = NotPropertyList("its parts do not fit together")
    private static let tooLarge = NotPropertyList(
        "it takes more than 96 MB, where what stands in several places counts in each")
}
