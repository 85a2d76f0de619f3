// SPDX-License-Identifier: Apache-2.0

import TortureLanguage
import Ubiquity
import UbiquityCore
import UbiquitySimulation

/// Changes keys whose writes merge, in a torture's app, as the simulator's apps do.
struct MergingApp {
    /// The value that it saw after it last wrote each key.
    private var remembered: [Key: PropertyListValue] = [:]

    func declare(in store: UbiquitousKeyValueStore) {
        for (key, policy) in MergedKeys.policies {
            let policy = ConflictPolicy(policy) { max("\($0.value)", "\($1.value)") }
            store.setConflictPolicy(policy, forKey: key.string)
        }
        MessageOutput.print(TortureMessage.declared)
    }

    /// Tells what it did before anything of that can be on the disk: a killed app cannot say so afterwards.
    mutating func act(_ number: Int, _ seed: UInt64, in store: UbiquitousKeyValueStore) {
        do {
            try store.write { engine, now throws(LimitViolation) in
                let chance = Chance(seed: seed)
                let move = move(number, chance, engine)
                guard let move, let act = try move.perform(in: &engine, at: now) else {
                    return MessageOutput.print(TortureMessage.passedOver)
                }
                MessageOutput.print(
                    TortureMessage.merged(number: number, move.key, act, at: MonotonicTime.now))
                remembered[move.key] = engine[move.key]
            }
        } catch { MessageOutput.print(TortureMessage.refused("\(error)")) }
    }

    /// Nil: there is nothing to remove, or values wait for the rule.
    private func move(
        _ number: Int, _ chance: Chance, _ engine: borrowing SyncEngine
    ) -> MergeMove? {
        let (key, policy) = chance.pick(MergedKeys.policies.sorted { $0.key < $1.key })
        // A store that is opened anew is the previous one, as long as a round trip of that is under
        // way.
        let isDeclared = engine.policy(of: key) != nil
        // The store has values that the app does not see yet.
        if policy == .register, engine.hasConflict { return nil }
        if chance.perMille(isDeclared ? 100 : 500) {
            guard engine[key] != nil else { return nil }
            return MergeMove(
                erasing: key, policy, number: number, in: engine.view(of: key), chance)
        }
        return isDeclared
            ? MergeMove(
                key, policy, number: number, remembered: remembered[key],
                in: engine.view(of: key), chance)
            : MergeMove(plainly: key, policy, number: number, in: engine.view(of: key))
    }
}
