// SPDX-License-Identifier: Apache-2.0

internal import CLibpq
internal import Foundation

extension SQLValue {
    /// The type's number in PostgreSQL; 0 if the server is to infer it.
    var type: Oid {
        switch self {
        case .null: 0
        case .integer: PostgresType.integer
        case .text: PostgresType.text
        case .bytes: PostgresType.bytes
        case .integers: 1016
        case .texts: 1009
        case .blobs: 1001
        }
    }
}

/// The numbers of the types in use, which never change.
enum PostgresType {
    static let boolean: Oid = 16
    static let bytes: Oid = 17
    static let name: Oid = 19
    static let integer: Oid = 20
    static let small: Oid = 21
    static let medium: Oid = 23
    static let text: Oid = 25
    static let varying: Oid = 1043
}

/// The parameters of a statement as bytes, one after the other.
struct PostgresParameters {
    private var bytes: [UInt8] = []
    /// Nil for null.
    private var ranges: [Range<Int>?] = []

    init(_ values: [SQLValue]) {
        ranges.reserveCapacity(values.count)
        for value in values {
            let start = bytes.count
            ranges.append(append(value) ? start..<bytes.count : nil)
        }
        // An empty value has an address too.
        bytes.append(0)
    }

    /// Calls the body with the arguments as libpq takes them.
    func with<T>(
        _ body: (
            _ count: Int32, _ values: UnsafePointer<UnsafePointer<CChar>?>?,
            _ lengths: UnsafePointer<Int32>?, _ formats: UnsafePointer<Int32>?
        ) -> T
    ) -> T {
        bytes.withUnsafeBytes { bytes in
            let start = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
            let values = ranges.map { range in range.map { start + $0.lowerBound } }
            let lengths = ranges.map { Int32($0?.count ?? 0) }
            let formats = [Int32](repeating: 1, count: ranges.count)
            return body(Int32(ranges.count), values, lengths, formats)
        }
    }

    /// - Returns: False for null.
    private mutating func append(_ value: SQLValue) -> Bool {
        switch value {
        case .null: return false
        case .integer(let number): append(number)
        case .text(let text): bytes += text.utf8
        case .bytes(let data): bytes += data
        case .integers(let items):
            append(array: items, of: PostgresType.integer) { $0.append($1) }
        case .texts(let items):
            append(array: items, of: PostgresType.text) { $0.bytes += $1.utf8 }
        case .blobs(let items):
            append(array: items, of: PostgresType.bytes) { $0.bytes += $1 }
        }
        return true
    }

    private mutating func append(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
    }

    /// One dimension, counted from 1; none if it is empty.
    private mutating func append<Item>(
        array items: [Item?], of type: Oid, _ item: (inout Self, Item) -> Void
    ) {
        append(Int32(items.isEmpty ? 0 : 1))
        append(Int32(items.contains { $0 == nil } ? 1 : 0))
        append(type)
        guard !items.isEmpty else { return }
        append(Int32(items.count))
        append(Int32(1))
        for value in items {
            let place = bytes.count
            append(Int32(-1))
            guard let value else { continue }
            item(&self, value)
            let length = UInt32(bytes.count - place - 4).bigEndian
            withUnsafeBytes(of: length) { bytes.replaceSubrange(place..<(place + 4), with: $0) }
        }
    }
}
