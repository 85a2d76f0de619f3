// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Names an account for ever, whatever people call it: 16 random hexadecimal digits.
package struct AccountID: Hashable, Sendable, CustomStringConvertible {
    package let string: String

    init(_ string: String) { self.string = string }

    static func random() -> AccountID { AccountID(DeviceID.random().description) }

    package var description: String { string }
}

extension DeviceID {
    /// Any but ``unassigned``.
    static func random() -> DeviceID {
        DeviceID(rawValue: UInt64.random(in: 1 ... .max))
    }
}
