// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A device to be signed in. The storage draws its ID.
package struct NewDevice: Hashable, Sendable {
    package var displayName: String
    package var credential: SecretHash
    package var devicesPerAccountMax: Int
    /// As ``DeviceRights/stores``. The terms of a code replace it.
    package var stores: Set<StoreIdentifier>?
    /// As ``DeviceRights/expires``. The terms of a code replace it.
    package var expires: Int64?
}
