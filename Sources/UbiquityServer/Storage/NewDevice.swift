// SPDX-License-Identifier: Apache-2.0

/// What a storage needs to sign a device in; the storage draws its ID.
package struct NewDevice: Hashable, Sendable {
    package var title: String
    package var credential: SecretHash
    package var devicesPerAccountMax: Int
}
