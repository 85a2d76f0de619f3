// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A push that waits to be committed.
package struct PendingPush: Sendable {
    package var store: StoreReference
    package var push: Push
    /// The rights that must still hold at the commit; nil to skip the check. Between the first byte
    /// of a push and its commit, a device may be revoked, or its credential may expire.
    package var rights: DeviceRights?

    package init(store: StoreReference, push: Push, by rights: DeviceRights? = nil) {
        self.store = store
        self.push = push
        self.rights = rights
    }
}
