// SPDX-License-Identifier: Apache-2.0

/// For each device, the greatest timestamp of its writes that the store has accepted or refused.
///
/// A write at or below its author's timestamp may be a repeat, and may have been deleted since. The
/// number of devices is bounded, because a push may name any authors of its writes. Beyond the bound,
/// the devices with the smallest timestamps share one, the greatest of theirs.
package struct VersionVector: Hashable, Sendable {
    package static let devicesMax = 256

    package private(set) var times: [DeviceID: HybridTimestamp]
    /// The timestamp shared by all devices that are not listed.
    package private(set) var floor: HybridTimestamp

    package init(times: [DeviceID: HybridTimestamp] = [:], floor: HybridTimestamp = .zero) {
        self.times = times
        self.floor = floor
    }

    package subscript(device: DeviceID) -> HybridTimestamp { times[device] ?? floor }

    /// Whether a write with this timestamp and author may have been decided about.
    package func mayContain(_ stamp: Stamp) -> Bool { stamp.timestamp <= self[stamp.device] }

    package mutating func note(_ stamp: Stamp) {
        guard !mayContain(stamp) else { return }
        times[stamp.device] = stamp.timestamp
        guard times.count > Self.devicesMax,
            let least = times.min(by: { ($0.value, $0.key) < ($1.value, $1.key) })
        else { return }
        times[least.key] = nil
        floor = max(floor, least.value)
    }
}
