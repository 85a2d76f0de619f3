// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What was seen of devices and is not stored yet. Losing it harms nothing.
package struct Sightings: Hashable, Sendable {
    /// When, in the server's milliseconds since 1970.
    package var seen: [DeviceName: Int64] = [:]
    /// The newest revision of a store that the device is known to have.
    package var passed: [Passage: Int64] = [:]

    package struct Passage: Hashable, Sendable {
        package var device: DeviceName
        package var store: StoreKey
    }

    package var isEmpty: Bool { seen.isEmpty && passed.isEmpty }
}
