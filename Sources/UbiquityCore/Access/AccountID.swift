// SPDX-License-Identifier: Apache-2.0

/// A permanent identifier of an account, independent of its name: 16 random hexadecimal digits.
package struct AccountID: Hashable, Sendable, CustomStringConvertible {
    package let string: String

    package init(_ string: String) { self.string = string }

    package var description: String { string }
}
