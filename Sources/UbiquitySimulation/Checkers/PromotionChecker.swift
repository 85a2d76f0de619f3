// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Nodes read and write one database: after a promotion, the promoted one, whichever others take
/// writes too. What it has acknowledged is never answered away, by a commit that takes its place or
/// an answer that does not know it.
final class PromotionChecker: Checker {
    /// The newest commits.
    private var positions: [StoreReference: Position] = [:]

    func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit):
            let revision = positions[commit.store]?.revision ?? 0
            let next = revision + (commit.isChange ? 1 : 0)
            guard commit.position.revision >= next else {
                return "\(commit.store) was at revision \(revision), and has committed "
                    + commit.position.cursor.text
            }
            positions[commit.store] = commit.position
        case .read(let store, let position):
            let known = positions[store] ?? Position(epoch: 0, revision: 0)
            guard position == known else {
                return "\(store) is at \(known.cursor), and was read at \(position.cursor)"
            }
        case .serverRestored(let restored, _): positions = restored
        default: break
        }
        return nil
    }
}
