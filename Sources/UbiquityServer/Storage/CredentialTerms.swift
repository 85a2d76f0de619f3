// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The rights of a device that signs in with a code.
package struct CredentialTerms: Hashable, Sendable {
    /// As ``DeviceRights/stores``.
    package var stores: Set<StoreIdentifier>?
    /// How long the device's credential is valid after the sign-in; nil means until it is revoked.
    package var milliseconds: Int64?

    package init(stores: Set<StoreIdentifier>? = nil, milliseconds: Int64? = nil) {
        self.stores = stores
        self.milliseconds = milliseconds
    }

    /// A longer list would no longer confine anything.
    package static let storesMax = 64
}
