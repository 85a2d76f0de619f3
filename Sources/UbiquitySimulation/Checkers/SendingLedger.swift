// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Under which stamps writes were sent, and which of them the server took late.
///
/// What the server finds in its future is stamped anew, and so is what was not answered and the server
/// does not have: where its clock was set back, under an earlier stamp than before. If the network brings the
/// first form after that once more, the server cannot know that its author has gone on. So a write is *late*
/// that the server took under a stamp which is later than what its device already had there in its place.
struct SendingLedger {
    private struct Form: Hashable {
        var key: Key
        var stamp: Stamp
    }

    /// Of each disk, the stamps under which writes of a key were sent, with their numbers.
    private var forms: [DiskName: [Key: [Stamp: Int]]] = [:]
    private var stamps: [Int: Stamp] = [:]
    /// What is stale if it comes now.
    private var stale: [Form: Int] = [:]
    private(set) var late: Set<Int> = []

    /// - Returns: Whether the write was sent under another stamp before.
    mutating func note(_ record: Record, of number: Int, on disk: DiskName?) -> Bool {
        if let disk { forms[disk, default: [:]][record.key, default: [:]][record.stamp] = number }
        let before = stamps.updateValue(record.stamp, forKey: number)
        return before != nil && before != record.stamp
    }

    /// Takes note of what waits on a disk from now on.
    mutating func note(_ entries: [StoredEntry], on disk: DiskName) {
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
