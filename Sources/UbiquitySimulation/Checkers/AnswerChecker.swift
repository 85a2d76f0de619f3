// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// The server answers a push only when its changes are durable: they were committed, and a
/// synchronous standby that takes over has them.
package final class AnswerChecker: Checker {
    private var committed: [StoreReference: Set<Position>] = [:]
    /// The greatest revision in the current history that the server has answered for.
    private var answered: [StoreReference: Int64] = [:]

    package init() {}

    package func check(_ observation: Observation, _ history: History) -> String? {
        switch observation {
        case .committed(let commit):
            committed[commit.store, default: []].insert(commit.position)
        case .answered(let store, let position):
            guard committed[store]?.contains(position) ?? false else {
                return "\(store) answered for \(position.cursor), which was not committed"
            }
            answered[store] = max(answered[store] ?? 0, position.revision)
        case .serverRestored(let positions, let keepsAnswers):
            for (store, revision) in answered.sorted(by: {
                ($0.key.account, $0.key.store) < ($1.key.account, $1.key.store)
            }) {
                let last = positions[store]?.revision ?? 0
                guard last < revision else { continue }
                if keepsAnswers {
                    return "\(store) answered for revision \(revision), and its standby only has "
                        + "\(last)"
                }
                answered[store] = last
            }
        default: break
        }
        return nil
    }
}
