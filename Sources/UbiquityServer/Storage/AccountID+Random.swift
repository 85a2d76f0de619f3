// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

extension AccountID {
    static func random() -> AccountID { AccountID(DeviceID.random().description) }
}

extension DeviceID {
    /// A random ID other than ``unassigned``.
    static func random() -> DeviceID {
        DeviceID(rawValue: UInt64.random(in: 1 ... .max))
    }
}
