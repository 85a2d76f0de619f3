// SPDX-License-Identifier: Apache-2.0

/// An account and a device ID, which is unique within its account only.
package struct DeviceReference: Hashable, Sendable {
    package var account: AccountID
    package var id: DeviceID

    package init(account: AccountID, id: DeviceID) {
        self.account = account
        self.id = id
    }
}
