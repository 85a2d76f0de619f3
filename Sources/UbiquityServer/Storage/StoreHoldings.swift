// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The parts of a store that the account's devices have at one moment.
struct StoreHoldings: Hashable, Sendable {
    /// The devices that are not revoked, the oldest first.
    var devices: [Device]
    /// The entries asked for, in no particular order.
    var entries: [DeliveryRule.Item] = []
    /// The revision up to which each device said to have saved the store.
    var passed: [DeviceID: Int64] = [:]
    var lineage = Lineage()

    /// Each device's delivery, in the order of ``devices``.
    var deliveries: [(device: Device, delivery: Delivery)] {
        let rule = DeliveryRule(entries, in: lineage)
        return devices.map { device in
            let id = device.reference.id
            return (device, rule.delivery(to: id, passed: passed[id]))
        }
    }
}
