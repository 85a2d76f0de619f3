// SPDX-License-Identifier: Apache-2.0

/// Issues the timestamps of a device's writes.
///
/// Until the device knows the error of its clock, its stamps are provisional: they order its own
/// writes, and become final with the first answer of a server in this boot.
package struct DeviceClock: Hashable, Sendable {
    package private(set) var correction: ClockCorrection?
    /// The greatest timestamp that will not change any more: those of others, and final ones of our
    /// own.
    package private(set) var latestFinal = HybridTimestamp.zero
    /// The greatest timestamp of all, including provisional ones.
    package private(set) var latest = HybridTimestamp.zero

    package init(correction: ClockCorrection?) { self.correction = correction }

    /// Observes a timestamp. Later writes will be later than it.
    package mutating func observe(_ timestamp: HybridTimestamp, isFinal: Bool = true) {
        if isFinal { latestFinal = max(latestFinal, timestamp) }
        latest = max(latest, timestamp)
    }

    /// Issues the timestamp of a write made now.
    /// - Returns: The timestamp, and what is needed to make it final; nil if it is final.
    package mutating func issue(
        at now: ClockReading
    ) -> (timestamp: HybridTimestamp, provisional: ProvisionalStamp?) {
        let timestamp = max(HybridTimestamp(milliseconds: milliseconds(at: now)), latest.next)
        if correction?.isExact(at: now) == true {
            observe(timestamp)
            return (timestamp, nil)
        }
        let provisional = ProvisionalStamp(madeAt: now, seen: latestFinal)
        latest = timestamp
        return (timestamp, provisional)
    }

    /// The shared time, as far as the device knows it.
    package func milliseconds(at now: ClockReading) -> Int64 {
        correction?.milliseconds(at: now) ?? now.wall
    }

    /// Adopts the measured error of the clock. Provisional stamps no longer count, because they are
    /// about to become final.
    package mutating func adopt(_ correction: ClockCorrection?, at now: ClockReading) {
        self.correction = correction
        if correction?.isExact(at: now) == true { latest = latestFinal }
    }

    /// The time of a write, by its final stamp if that is known.
    package func time(of write: PendingWrite, at now: ClockReading) -> HybridTimestamp {
        guard let provisional = write.provisional, let correction, correction.isExact(at: now)
        else { return write.record.stamp.timestamp }
        return made(provisional, correction, at: now)
    }

    /// Whether one write of this device was made before another, as far as this process can tell.
    package func isEarlier(_ a: PendingWrite, than b: PendingWrite, at now: ClockReading) -> Bool {
        if let a = a.provisional, let b = b.provisional, a.madeAt.boot == b.madeAt.boot,
            a.madeAt.uptime != b.madeAt.uptime
        {
            return a.madeAt.uptime < b.madeAt.uptime
        }
        let (first, second) = (estimate(a, at: now), estimate(b, at: now))
        if first != second { return first < second }
        // Of two transactions, one must be the later for all keys.
        return (a.record.stamp, a.transaction) < (b.record.stamp, b.transaction)
    }

    /// The estimated time of a write with an unknown final stamp, assuming the clock's error of an
    /// earlier boot. Its provisional stamp may be hours off.
    private func estimate(_ write: PendingWrite, at now: ClockReading) -> HybridTimestamp {
        guard let provisional = write.provisional, let correction else {
            return write.record.stamp.timestamp
        }
        return made(provisional, correction, at: now)
    }

    /// The time by the server's clock, but later than everything the author had seen.
    private func made(
        _ stamp: ProvisionalStamp, _ correction: ClockCorrection, at now: ClockReading
    ) -> HybridTimestamp {
        // No write was made later than now, whatever its author's clock said.
        let made = min(correction.milliseconds(at: stamp.madeAt), correction.milliseconds(at: now))
        return max(HybridTimestamp(milliseconds: made), stamp.seen.next)
    }

    /// Makes provisional stamps final: the server's time at which the write was made, but later
    /// than everything its author had seen, in the order in which the writes were made.
    ///
    /// - Parameters:
    ///   - provisional: One for each current stamp. Two processes may issue the same timestamp.
    /// - Returns: The final timestamp for each current stamp; empty while the clock's error is
    ///   unknown.
    package mutating func finalize(
        _ provisional: [Stamp: ProvisionalStamp], at now: ClockReading
    ) -> [Stamp: HybridTimestamp] {
        guard let correction, correction.isExact(at: now) else { return [:] }
        var previous = HybridTimestamp.zero
        var result: [Stamp: HybridTimestamp] = [:]
        for (old, stamp) in Self.inOrder(provisional) {
            previous = max(made(stamp, correction, at: now), previous.next)
            result[old] = previous
        }
        latestFinal = max(latestFinal, previous)
        latest = latestFinal
        return result
    }

    /// In the order in which they were made: those of a boot by its uptime, because the wall clock may have
    /// been set in between; and several boots side by side, by the stamps. A process that starts stamps
    /// later than everything on disk, but others of the device may go on, each with a boot of its own,
    /// such as the tabs of a browser.
    private static func inOrder(
        _ provisional: [Stamp: ProvisionalStamp]
    ) -> [(key: Stamp, value: ProvisionalStamp)] {
        var boots = Dictionary(grouping: provisional) { $0.value.madeAt.boot }.values.map {
            // The first one is at the end.
            $0.inOrder { ($0.value.madeAt.uptime, $0.key) > ($1.value.madeAt.uptime, $1.key) }
        }
        var result: [(key: Stamp, value: ProvisionalStamp)] = []
        while let place = boots.indices.min(by: { boots[$0].last!.key < boots[$1].last!.key }) {
            result.append(boots[place].removeLast())
            if boots[place].isEmpty { boots.remove(at: place) }
        }
        return result
    }
}
