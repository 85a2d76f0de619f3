// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Last-seen information of devices that is not stored yet. Losing it does no harm.
package struct LastSeenUpdate: Hashable, Sendable {
    /// In milliseconds since 1970 by the server's clock.
    package var seen: [DeviceReference: Int64] = [:]
    /// The newest revision of a store that the device is known to have.
    package var passed: [DeviceStore: Int64] = [:]

    package struct DeviceStore: Hashable, Sendable {
        package var device: DeviceReference
        package var store: StoreReference
    }

    package var isEmpty: Bool { seen.isEmpty && passed.isEmpty }
}
