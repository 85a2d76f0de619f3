// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A signed-in device.
package struct Device: Hashable, Sendable {
    package var rights: DeviceRights
    /// What its owner calls it.
    package var title: String
    /// The server's milliseconds since 1970.
    package var created: Int64
    /// When it was last heard of, to the minute or so, in the server's milliseconds since 1970.
    package var seen: Int64

    package var name: DeviceName { rights.name }
}
