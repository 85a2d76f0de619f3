// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// A report of which of a person's devices have the values of a store, or the value of a key, as
/// the devices have reported to the server.
///
/// A device has a value when it is on that device's disk. Whether an app has shown it is another
/// question.
public struct UbiquityDelivery: Hashable, Sendable {
    /// A device of the account that may use the store.
    public struct Device: Hashable, Sendable, Identifiable {
        /// The ID that the server gave it.
        public var id: String
        /// The name that its owner gave it.
        public var name: String
        /// Whether it is the device on which this program runs.
        public var isThisDevice: Bool
        /// Whether it has everything, or the key's present value.
        public var isCurrent: Bool
        /// The number of changes that it has not said to have saved, removals included; 0 if it has
        /// never used the store.
        public var changesBehind: Int
        /// Whether it has ever used the store.
        public var hasStore: Bool
        /// When the server last heard of it, to about a minute.
        public var lastSeen: Date
        /// By how much its clock was ahead of the server's, in seconds; nil if it has not said. A
        /// second or two may be the time that its message took.
        public var clockAhead: TimeInterval?
        /// The version of this library that it last used; nil if it has not said.
        public var version: String?
    }

    /// The devices, those that signed in first at the beginning.
    public var devices: [Device]

    /// Whether all devices that have ever used the store have everything.
    public var isComplete: Bool { devices.allSatisfy { $0.isCurrent || !$0.hasStore } }

    /// - Parameters:
    ///   - own: The device on which this program runs.
    ///   - waiting: The number of its changes that the server does not have yet.
    init(_ deliveries: [DeviceDelivery], own: DeviceID?, waiting: Int) {
        devices = deliveries.map { delivery in
            let isOwn = delivery.device == own
            let waits = isOwn ? 0 : waiting
            return Device(
                id: delivery.device.description, name: delivery.name, isThisDevice: isOwn,
                isCurrent: delivery.delivery.isCurrent && waits == 0,
                changesBehind: delivery.delivery.hasStore ? delivery.delivery.behind + waits : 0,
                hasStore: delivery.delivery.hasStore,
                lastSeen: Date(milliseconds: delivery.seenMilliseconds),
                clockAhead: delivery.clockAheadMilliseconds.map { Double($0) / 1_000 },
                version: delivery.version)
        }
    }
}

extension UbiquityDelivery: CustomStringConvertible {
    /// A sentence in English, such as "on 2 of 3 devices; laptop was last seen on 2026-11-17".
    public var description: String {
        let current = devices.count(where: \.isCurrent)
        let count = "on \(current) of \(devices.count) device\(devices.count == 1 ? "" : "s")"
        let absent = devices.filter { !$0.isCurrent }.min { $0.lastSeen < $1.lastSeen }
        guard let absent else { return count }
        let day = absent.lastSeen.ISO8601Format(.iso8601.year().month().day())
        return "\(count); \(absent.name) was last seen on \(day)"
    }
}
