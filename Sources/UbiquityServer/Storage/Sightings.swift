// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Last-seen information of devices that is not stored yet. Losing it does no harm.
package struct Sightings: Hashable, Sendable {
    /// In milliseconds since 1970 by the server's clock.
    package var seen: [DeviceName: Int64] = [:]
    /// The newest revision of a store that the device is known to have.
    package var passed: [Passage: Int64] = [:]

    package struct Passage: Hashable, Sendable {
        package var device: DeviceName
        package var store: StoreKey
    }

    package var isEmpty: Bool { seen.isEmpty && passed.isEmpty }
}
