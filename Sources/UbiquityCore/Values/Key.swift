// SPDX-License-Identifier: Apache-2.0

/// The name of one entry of a store: not empty, case-sensitive, compared by its UTF-8 bytes.
///
/// How long a key may be is a setting of the server, so it is checked where the setting is known:
/// ``KeyLimit/check(_:)``.
package struct Key: Hashable, Sendable {
    package let name: ExactString

    /// - Throws: ``KeyError/empty`` for an empty string.
    package init(_ string: String) throws(KeyError) {
        guard !string.isEmpty else { throw .empty }
        name = ExactString(string)
    }

    package var string: String { name.string }
}

extension Key: Comparable, CustomStringConvertible {
    package static func < (a: Key, b: Key) -> Bool { a.name < b.name }
    package var description: String { name.string }
}

/// Why a string cannot be a key.
package enum KeyError: Error, Equatable, Sendable {
    case empty
    case tooLong(KeyLimit)
}

extension KeyError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .empty: "a key must not be empty"
        case .tooLong(.utf8Bytes(let max)): "a key may have at most \(max) bytes of UTF-8"
        case .tooLong(.utf16Units(let max)): "a key may have at most \(max) UTF-16 units"
        }
    }
}

/// How long a key may be.
///
/// The published guides of Apple's store say 64 bytes of UTF-8; its current SDK says 128 UTF-16
/// units. A store has one of the two.
package enum KeyLimit: Hashable, Sendable {
    case utf8Bytes(Int)
    case utf16Units(Int)

    package func check(_ key: Key) throws(KeyError) {
        let fits =
            switch self {
            case .utf8Bytes(let max): key.string.utf8.count <= max
            case .utf16Units(let max): key.string.utf16.count <= max
            }
        guard fits else { throw .tooLong(self) }
    }
}
