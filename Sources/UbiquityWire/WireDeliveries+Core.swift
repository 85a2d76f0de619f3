// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

extension DeviceDelivery {
    /// - Throws: ``WireError`` for a device without an ID.
    package init(_ wire: WireDelivery) throws(WireError) {
        guard let device = DeviceID(wire.device.id) else {
            throw WireError("a delivery's device has no ID")
        }
        self.init(
            device: device, name: wire.device.name,
            seenMilliseconds: Int64(wireMilliseconds: wire.device.seenMilliseconds),
            clockAheadMilliseconds: wire.device.clockAhead,
            version: wire.device.version.isEmpty ? nil : wire.device.version,
            delivery: Delivery(
                isCurrent: wire.isCurrent, behind: Int(clamping: wire.behind),
                hasStore: wire.hasStore_p))
    }
}

extension WireDevice {
    /// In milliseconds; nil if it has not said.
    package var clockAhead: Int64? { clockMilliseconds == 0 ? nil : clockAheadMilliseconds }
}
