// SPDX-License-Identifier: Apache-2.0

/// Identifies a device within its account: 64 bits that the server draws when the device signs in.
///
/// Its text is 16 hexadecimal digits. ``unassigned`` is the author of writes made before a sign-in.
package struct DeviceID: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Fails unless the text is 16 hexadecimal digits.
    package init?(_ text: String) {
        guard let value = UInt64(hexadecimal: text) else { return nil }
        rawValue = value
    }

    package static let unassigned = DeviceID(rawValue: 0)

    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

extension DeviceID: CustomStringConvertible {
    package var description: String { rawValue.hexadecimal }
}

/// A permanent identifier of an account, independent of its name: 64 random bits. Its text is 16
/// hexadecimal digits.
package struct AccountID: Hashable, Comparable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Fails unless the text is 16 hexadecimal digits.
    package init?(_ text: String) {
        guard let value = UInt64(hexadecimal: text) else { return nil }
        rawValue = value
    }

    package var string: String { rawValue.hexadecimal }

    /// In the order of their texts, too.
    package static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}

extension AccountID: CustomStringConvertible {
    package var description: String { string }
}

extension UInt64 {
    /// Fails unless the text is 16 hexadecimal digits, without capitals.
    init?(hexadecimal text: String) {
        guard text.utf8.count == 16, text.utf8.allSatisfy({ $0.isDigit || (0x61...0x66) ~= $0 })
        else { return nil }
        self.init(text, radix: 16)
    }

    /// 16 digits.
    package var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

/// Names a store within an account, such as `TEAMID.com.example.app`.
///
/// 1 to 255 ASCII letters, digits, points, hyphens and underscores, beginning with a letter or
/// digit. It is used in addresses and file names.
package struct StoreIdentifier: Hashable, Sendable, CustomStringConvertible {
    @Exact package private(set) var string: String

    /// - Throws: ``StoreIdentifierError`` for any other string.
    package init(_ string: String) throws(StoreIdentifierError) {
        let bytes = string.utf8
        guard (1...255).contains(bytes.count), let first = bytes.first, first.isAlphanumeric,
            bytes.allSatisfy({ $0.isAlphanumeric || ".-_".utf8.contains($0) })
        else { throw StoreIdentifierError() }
        self.string = string
    }

    package var description: String { string }
}

package struct StoreIdentifierError: Error, Equatable, Sendable, CustomStringConvertible {
    package var description: String {
        "a store identifier has 1 to 255 letters, digits, dots, hyphens and underscores, and "
            + "begins with a letter or digit"
    }
}
