// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What a storage needs to sign a device in; the storage draws its ID.
package struct NewDevice: Hashable, Sendable {
    package var title: String
    package var credential: SecretHash
    package var devicesPerAccountMax: Int
    /// As ``DeviceRights/stores``. A code's confinement takes its place.
    package var stores: Set<StoreIdentifier>?
    /// As ``DeviceRights/expires``. What a code says takes its place.
    package var expires: Int64?
}
