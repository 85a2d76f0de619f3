// SPDX-License-Identifier: Apache-2.0

/// The greatest timestamp of each device that a store ever decided about, for or against it.
///
/// A write at or below its author's may be a repeat, and what it wrote may have been deleted since.
/// The number of devices has a bound, for a push names the authors of its writes: beyond it, the
/// ones whose timestamps are the least share one, the greatest among them.
package struct AcceptedTimes: Hashable, Sendable {
    package static let devicesMax = 256

    package private(set) var times: [DeviceID: HybridTimestamp]
    /// The one that all devices share that are not listed.
    package private(set) var floor: HybridTimestamp

    package init(times: [DeviceID: HybridTimestamp] = [:], floor: HybridTimestamp = .zero) {
        self.times = times
        self.floor = floor
    }

    package subscript(device: DeviceID) -> HybridTimestamp { times[device] ?? floor }

    /// Whether a write of that timestamp and author may have been decided about.
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
