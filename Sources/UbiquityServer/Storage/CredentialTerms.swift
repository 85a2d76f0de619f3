// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What a device may do that signs in with a code.
package struct CredentialTerms: Hashable, Sendable {
    /// As ``DeviceRights/stores``.
    package var stores: Set<StoreIdentifier>?
    /// How long the device's credential is good, from the sign-in on; nil: until it is revoked.
    package var milliseconds: Int64?

    package init(stores: Set<StoreIdentifier>? = nil, milliseconds: Int64? = nil) {
        self.stores = stores
        self.milliseconds = milliseconds
    }

    /// Above, a confinement is none any more.
    package static let storesMax = 64
}
