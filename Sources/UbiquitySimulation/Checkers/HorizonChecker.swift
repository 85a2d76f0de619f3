// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The server keeps a tombstone for as long as it promises, by no clock that jumps; only if there
/// are too many, the oldest are dropped earlier.
package final class HorizonChecker: Checker {
    /// The true time of each deletion's commit, and its revision.
    private var committed: [StoreReference: [Record: (time: Int64, revision: Int64)]] = [:]
    private let now: () -> Int64

    package init(now: @escaping () -> Int64) { self.now = now }

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit):
            for write in commit.writes where write.content == .deleted {
                committed[commit.store, default: [:]][write] = (now(), commit.position.revision)
            }
        case .compacted(let store, let deletions, let left, let rule):
            let known = deletions.compactMap { committed[store]?[$0] }
                .sorted { $0.revision < $1.revision }
            let oldest = now() - rule.retentionMilliseconds
            let excess = min(known.count, deletions.count + left - rule.tombstonesMax)
            // Those of one revision go together.
            let through = excess > 0 ? known[excess - 1].revision : .min
            if known.contains(where: { $0.time > oldest && $0.revision > through }) {
                return "\(store) has forgotten deletions too early, and remembers \(left)"
            }
        default: break
        }
        return nil
    }
}
