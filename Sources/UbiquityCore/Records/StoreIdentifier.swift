// SPDX-License-Identifier: Apache-2.0

/// Names a store within an account, such as `TEAMID.com.example.app`.
///
/// 1 to 255 ASCII letters, digits, points, hyphens and underscores, beginning with a letter or
/// digit. It is used in addresses and file names.
package struct StoreIdentifier: Hashable, Sendable, CustomStringConvertible {
    package let string: String

    /// - Throws: ``StoreIdentifierError`` for any other string.
    package init(_ string: String) throws(StoreIdentifierError) {
        let bytes = string.utf8
        guard (1...255).contains(bytes.count), let first = bytes.first,
            Self.isAlphanumeric(first),
            bytes.allSatisfy({ Self.isAlphanumeric($0) || ".-_".utf8.contains($0) })
        else { throw StoreIdentifierError() }
        self.string = string
    }

    package var description: String { string }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: false
        }
    }
}

package struct StoreIdentifierError: Error, Equatable, Sendable, CustomStringConvertible {
    package var description: String {
        "a store identifier has 1 to 255 letters, digits, points, hyphens and underscores, and "
            + "begins with a letter or digit"
    }
}
