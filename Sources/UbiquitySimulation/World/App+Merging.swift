// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension App {
    /// Changes a key whose writes merge.
    func merge(_ process: VirtualProcess) {
        let (key, policy) = world.chance.pick(world.mergedKeys.sorted { $0.key < $1.key })
        switch world.chance.int(0...99) {
        case 0..<7: erase(key, policy, process)
        // An app that declares a rule never writes plainly.
        case 7..<14 where policy != .register || !process.declaresRule:
            perform(
                MergeMove(
                    plainly: key, policy, number: world.newWriteNumber(),
                    in: process.view(of: key)),
                process)
        default: merge(key, policy, process)
        }
    }

    /// Counts once for each counter.
    func countAll(_ process: VirtualProcess) {
        for (key, policy) in world.mergedKeys where policy == .counter {
            merge(key, policy, process)
        }
    }

    /// Writes or removes the key with the app's own rule.
    func changeByRule(_ process: VirtualProcess) {
        for (key, policy) in world.mergedKeys where policy == .register {
            if world.chance.perMille(200) {
                erase(key, policy, process)
            } else {
                merge(key, policy, process)
            }
        }
    }

    /// Removes all counters.
    func eraseCounts(_ process: VirtualProcess) {
        for (key, policy) in world.mergedKeys where policy == .counter {
            erase(key, policy, process)
        }
    }

    private func merge(_ key: Key, _ policy: MergePolicy, _ process: VirtualProcess) {
        var kept: ExternalCount?
        let move = MergeMove(
            key, policy, number: world.newWriteNumber(), remembered: remembered[key],
            in: process.view(of: key), world.chance
        ) { amount in
            // A run that repeats a kept count must be remembered, see decision 0024.
            if world.chance.perMille(300), world.scenario.foldedMax == nil {
                kept = externalCount(amount, key, process)
            }
            return kept
        }
        guard perform(move, process) else { return }
        remembered[key] = process.engine[key]
        if let kept { world.externalCounts[process.disk.name, default: [:]][key] = kept }
    }

    /// Sets a field of a dictionary that others may have set as well, and removes it at once.
    func putAndClear(_ process: VirtualProcess) {
        let key = world.mergedKeys.first { $0.value == .dictionary }?.key
        guard let key else { return }
        let field = MergeMove.field(world.chance)
        for isClearing in [false, true] {
            let move = MergeMove(
                field: field, of: key, number: world.newWriteNumber(), isClearing: isClearing,
                in: process.view(of: key))
            guard perform(move, process) else { return }
            remembered[key] = process.engine[key]
        }
    }

    private func erase(_ key: Key, _ policy: MergePolicy, _ process: VirtualProcess) {
        guard process.engine[key] != nil else { return }
        perform(
            MergeMove(
                erasing: key, policy, number: world.newWriteNumber(),
                in: process.view(of: key), world.chance),
            process)
    }

    /// - Returns: Whether the store accepted it.
    @discardableResult
    private func perform(_ move: MergeMove, _ process: VirtualProcess) -> Bool {
        do throws(LimitViolation) {
            guard let act = try process.perform(move) else { return true }
            world.journal.note(
                .merged(
                    AppOperation(
                        number: move.number, process: process.number, disk: process.disk.name,
                        key: move.key, act: act, seen: process.engine[move.key], time: world.now)))
            return true
        } catch {
            world.journal.note(.refused(process: process.number, [move.key]))
            return false
        }
    }

    // MARK: - Counting

    /// The next count of a mirror of preferences, which keeps its counts beside the store.
    private func externalCount(
        _ amount: PropertyListValue, _ key: Key, _ process: VirtualProcess
    ) -> ExternalCount? {
        let next = world.externalCounts[process.disk.name]?[key]?.adding(
            from: .integer(0), to: amount)
        if let next, !process.engine.hasCounted(moreThan: next, under: key) { return next }
        return ExternalCount(run: world.chance.number()).adding(from: .integer(0), to: amount)
    }

    /// A starting process repeats the counts that are kept beside the store, which may not have
    /// reached its disk.
    /// - Returns: The keys whose count the store refused.
    func takeUpCounts(_ process: VirtualProcess) -> Set<Key> {
        guard let counts = world.externalCounts[process.disk.name] else { return [] }
        var refused: Set<Key> = []
        for (key, count) in counts.sorted(by: { $0.key < $1.key })
        where !process.engine.hasCounted(moreThan: count, under: key) {
            do { try process.apply(MergeOperation(count: count), key) } catch {
                refused.insert(key)
            }
        }
        return refused
    }
}
