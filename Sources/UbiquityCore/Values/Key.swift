// SPDX-License-Identifier: Apache-2.0

/// The name of one entry of a store: not empty, case-sensitive, compared by its UTF-8 bytes.
///
/// A key whose writes merge has parts, see ``MergePolicy``. Each is an entry of its own with the
/// same name. Only the store knows of them; an app sees the value that they make together.
///
/// The maximum length is a setting of the server, so it is checked where the setting is known:
/// ``KeyLimit/check(_:)``.
package struct Key: Sendable {
    package let name: ExactString
    /// In a box because hardly any key has one.
    private let box: PartBox?

    private final class PartBox: Sendable {
        let id: PartID
        init(_ id: PartID) { self.id = id }
    }

    /// The longest name in any message, in bytes of UTF-8, whatever a store's limit is. It also
    /// bounds deletions, which no limit refuses.
    package static let bytesMax = 1_024

    /// - Throws: ``KeyError/empty`` for an empty string.
    package init(_ string: String) throws(KeyError) {
        guard !string.isEmpty else { throw .empty }
        name = ExactString(string)
        box = nil
    }

    private init(_ name: ExactString, _ box: PartBox?) {
        self.name = name
        self.box = box
    }

    package var string: String { name.string }

    /// The part of the key that this is; nil for the key itself.
    package var part: PartID? { box?.id }

    package var isPart: Bool { box != nil }

    /// The key without its part.
    package var whole: Key { Key(name, nil) }

    package func part(_ id: PartID) -> Key { Key(name, PartBox(id)) }
}

extension Key: Hashable {
    package static func == (a: Key, b: Key) -> Bool {
        guard a.name == b.name else { return false }
        return a.box == nil ? b.box == nil : a.part == b.part
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        if let part { hasher.combine(part) }
    }

    /// See ``ExactString/quickHash(_:)``.
    func quickHash(_ seed: HashSeed) -> UInt32 {
        guard let part else { return name.quickHash(seed) }
        return name.quickHash(seed) &* 0x9E37_79B1 ^ part.text.quickHash(seed)
    }
}

extension Key: Comparable, CustomStringConvertible {
    package static func < (a: Key, b: Key) -> Bool {
        guard a.name == b.name else { return a.name < b.name }
        guard let part = b.part else { return false }
        return a.part.map { $0 < part } ?? true
    }

    package var description: String { part.map { "\(name)/\($0)" } ?? name.string }
}

extension Key {
    /// Stands before the part. It does not occur in UTF-8.
    private static let separator: UInt8 = 0xFF

    /// For a database: the name's bytes, then a byte that does not occur in UTF-8 and the bytes of
    /// the part.
    package var bytes: [UInt8] {
        guard let part else { return Array(string.utf8) }
        return Array(string.utf8) + [Self.separator] + Array(part.text.string.utf8)
    }

    /// Whether these are the ``bytes`` of this key, which is not a part, or of one of its parts.
    package func includes(bytes: some Sequence<UInt8>) -> Bool {
        var rest = bytes.makeIterator()
        for byte in string.utf8 where rest.next() != byte { return false }
        return rest.next().map { $0 == Self.separator } ?? true
    }

    /// The number of ``bytes``.
    var bytesCount: Int { string.utf8.count + (part.map { 1 + $0.text.string.utf8.count } ?? 0) }

    /// The number of tombstones that the key's deletion counts as, by its size.
    package var tombstoneWeight: Int { Self.tombstoneWeight(bytes: bytesCount) }

    /// The same for a key of this many bytes, including the name of its part: one for up to 64.
    package static func tombstoneWeight(bytes: Int) -> Int {
        let (usual, overhead) = (64, 16)
        return max(1, (bytes + overhead + usual + overhead - 1) / (usual + overhead))
    }

    /// - Throws: ``KeyError`` for bytes that are not a key's.
    package init(bytes: UnsafeRawBufferPointer) throws(KeyError) {
        guard let end = bytes.firstIndex(of: Self.separator) else {
            try self.init(String(decoding: bytes, as: UTF8.self))
            return
        }
        let text = String(
            decoding: UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...]), as: UTF8.self)
        guard let part = PartID(text) else { throw .noPart }
        let name = UnsafeRawBufferPointer(rebasing: bytes[..<end])
        self = try Key(String(decoding: name, as: UTF8.self)).part(part)
    }
}

/// Names a part within a key: 1 to 1,024 bytes of UTF-8. The first byte is the kind of the part.
package struct PartID: Hashable, Sendable, Comparable, CustomStringConvertible {
    package let text: ExactString

    package static let bytesMax = 1_024

    /// Fails for a text that is empty or too long.
    package init?(_ text: String) {
        guard (1...Self.bytesMax).contains(text.utf8.count) else { return nil }
        self.text = ExactString(text)
    }

    package static func < (a: Self, b: Self) -> Bool { a.text < b.text }

    package var description: String { text.string }
}

/// The reason a string cannot be a key.
package enum KeyError: Error, Equatable, Sendable {
    case empty
    case tooLong(KeyLimit)
    case noPart
}

extension KeyError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "a key must not be empty"
        case .tooLong(.utf8Bytes(let max)): "a key may have at most \(max) bytes of UTF-8"
        case .tooLong(.utf16Units(let max)): "a key may have at most \(max) UTF-16 units"
        case .noPart: "a part of a key has 1 to \(PartID.bytesMax) bytes of UTF-8"
        }
    }
}

/// The maximum length of a key.
///
/// The published guides of Apple's store say 64 bytes of UTF-8; its current SDK says 128 UTF-16
/// units. A store uses one of the two.
package enum KeyLimit: Hashable, Sendable {
    case utf8Bytes(Int)
    case utf16Units(Int)

    package func check(_ key: Key) throws(KeyError) {
        let fits =
            switch self {
            case .utf8Bytes(let max): key.string.utf8.count <= max
            case .utf16Units(let max): key.string.utf8.count <= max || key.string.utf16Count <= max
            }
        guard fits else { throw .tooLong(self) }
    }
}
