// SPDX-License-Identifier: Apache-2.0

/// Stamps a device's writes.
///
/// While the device does not know how wrong its clock is, its stamps are provisional: they order
/// its own writes, and become final when the first answer of a server in this boot tells.
package struct DeviceClock: Hashable, Sendable {
    package private(set) var correction: ClockCorrection?
    /// The greatest timestamp that will not change any more: others' and final ones of our own.
    package private(set) var settled = HybridTimestamp.zero
    /// The greatest timestamp of all, provisional ones included.
    package private(set) var latest = HybridTimestamp.zero

    package init(correction: ClockCorrection?) { self.correction = correction }

    /// Takes note of a timestamp that was seen; later writes will be later than it.
    package mutating func observe(_ timestamp: HybridTimestamp, isFinal: Bool = true) {
        if isFinal { settled = max(settled, timestamp) }
        latest = max(latest, timestamp)
    }

    /// Stamps a write that is made now.
    /// - Returns: The stamp, and how to make it final; nil: it is.
    package mutating func issue(
        at now: ClockReading
    ) -> (timestamp: HybridTimestamp, provisional: ProvisionalStamp?) {
        let timestamp = max(HybridTimestamp(milliseconds: milliseconds(at: now)), latest.next)
        if correction?.isExact(at: now) == true {
            observe(timestamp)
            return (timestamp, nil)
        }
        let provisional = ProvisionalStamp(madeAt: now, seen: settled)
        latest = timestamp
        return (timestamp, provisional)
    }

    /// The shared time, as far as the device knows it.
    package func milliseconds(at now: ClockReading) -> Int64 {
        correction?.milliseconds(at: now) ?? now.wall
    }

    package mutating func adopt(_ correction: ClockCorrection?) { self.correction = correction }

    /// Makes provisional stamps final: the time at which the write was made by the server's clock,
    /// but later than what its author had seen, in the order in which the writes were made.
    ///
    /// - Parameters:
    ///   - provisional: One stamp a transaction, with its present timestamp.
    /// - Returns: The final timestamp for each present one. Nothing while the error is not known.
    package mutating func finalize(
        _ provisional: [HybridTimestamp: ProvisionalStamp], at now: ClockReading
    ) -> [HybridTimestamp: HybridTimestamp] {
        guard let correction, correction.isExact(at: now) else { return [:] }
        let nowMilliseconds = correction.milliseconds(at: now)
        var previous = HybridTimestamp.zero
        var result: [HybridTimestamp: HybridTimestamp] = [:]
        for (old, stamp) in provisional.sorted(by: { $0.key < $1.key }) {
            // No write was made later than now, whatever its author's clock said.
            let made = min(correction.milliseconds(at: stamp.madeAt), nowMilliseconds)
            previous = max(HybridTimestamp(milliseconds: made), stamp.seen.next, previous.next)
            result[old] = previous
        }
        settled = max(settled, previous)
        latest = settled
        return result
    }
}
