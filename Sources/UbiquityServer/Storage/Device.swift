// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A signed-in device.
package struct Device: Hashable, Sendable {
    package var rights: DeviceRights
    /// The name that its owner gave it.
    package var displayName: String
    /// The server's milliseconds since 1970.
    package var created: Int64
    /// When it was last seen, in milliseconds since 1970 by the server's clock, to about a minute.
    package var seen: Int64

    package var reference: DeviceReference { rights.reference }
}
