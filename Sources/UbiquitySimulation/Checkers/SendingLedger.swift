// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The stamps under which writes were sent, and the writes that the server accepted late.
///
/// A write that the server finds in its future gets a new stamp, and so does an unanswered one that
/// the server does not have. If the server's clock was set back, the new stamp is earlier than the
/// old one. If the network then delivers the first form once more, the server cannot know that its
/// author has moved on. So a write is *late* if the server accepted it with a stamp later than that
/// of its replacement on its device.
struct SendingLedger {
    private struct Form: Hashable {
        var key: Key
        var stamp: Stamp
    }

    /// For each disk, the stamps under which writes of a key were sent, with their numbers.
    private var forms: [DiskReference: [Key: [Stamp: Int]]] = [:]
    private var stamps: [Int: Stamp] = [:]
    /// The forms that are stale if they arrive now.
    private var stale: [Form: Int] = [:]
    private(set) var late: Set<Int> = []

    /// - Returns: Whether the write was sent with another stamp before.
    mutating func note(_ record: Record, of number: Int, on disk: DiskReference?) -> Bool {
        if let disk { forms[disk, default: [:]][record.key, default: [:]][record.stamp] = number }
        let before = stamps.updateValue(record.stamp, forKey: number)
        return before != nil && before != record.stamp
    }

    /// Records the entries that now wait on a disk.
    mutating func note(_ entries: [StoredEntry], on disk: DiskReference) {
        guard let forms = forms[disk] else { return }
        for entry in entries {
            guard let pending = entry.pending, pending.provisional == nil else { continue }
            for (stamp, number) in forms[entry.key] ?? [:] where stamp > pending.record.stamp {
                stale[Form(key: entry.key, stamp: stamp)] = number
            }
        }
    }

    mutating func note(_ commit: Commit) {
        if stale.isEmpty { return }
        for write in commit.writes {
            if let number = stale[Form(key: write.key, stamp: write.stamp)] { late.insert(number) }
        }
    }
}
