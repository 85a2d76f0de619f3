// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// The writes that wait for the server, by the keys of their records.
    package var waitingWrites: [Key: PendingWrite] {
        waiting.reduce(into: [:]) { $0[$1] = entries[$1]?.pending }
    }

    /// Whether none of these writes waits any more: device and server agree on it, or on a later
    /// one of the same key. Looking for new writes would not do: an app that keeps writing a key
    /// nearly always has one waiting.
    package func hasConfirmed(_ writes: [Key: PendingWrite], at now: ClockReading) -> Bool {
        writes.allSatisfy { key, write in
            guard let entry = entries[key], entry.waits else { return true }
            guard entry.pending?.transaction != write.transaction, let confirmed = entry.confirmed
            else { return false }
            return clock.time(of: write, at: now) <= confirmed.stamp.timestamp
        }
    }
}
