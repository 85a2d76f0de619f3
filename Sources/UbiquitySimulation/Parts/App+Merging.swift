// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension App {
    private static let fields = ["f0", "f1", "f2"]

    /// Changes a key whose writes merge.
    func merge(_ process: VirtualProcess) {
        let (key, policy) = world.chance.pick(world.mergedKeys.sorted { $0.key < $1.key })
        switch world.chance.int(0...99) {
        case 0..<7: erase(key, policy, process)
        case 7..<14: writePlainly(key, policy, process)
        default: merge(key, policy, process)
        }
    }

    /// Counts once for each counter.
    func countAll(_ process: VirtualProcess) {
        for (key, policy) in world.mergedKeys where policy == .counter {
            merge(key, policy, process)
        }
    }

    /// Removes all counters.
    func eraseCounts(_ process: VirtualProcess) {
        for (key, policy) in world.mergedKeys where policy == .counter {
            erase(key, policy, process)
        }
    }

    private func merge(_ key: Key, _ policy: MergePolicy, _ process: VirtualProcess) {
        let number = world.newWriteNumber()
        // An app may start from what it saw when it last wrote, as a mirror of preferences does.
        let known = process.engine[key]
        let seen = world.chance.coin() ? known : remembered[key] ?? known
        switch policy {
        case .counter: count(key, number, process)
        case .maximum, .minimum:
            let offer = AppProposal.offer(world.chance.int(1...1_000), number: number)
            self.propose(
                Proposal(policy, from: seen, to: .integer(offer)), key, number, process
            ) { changes in
                .offer(part: changes.first { $0.after == .integer(offer) }!.part, offer)
            }
        case .array: changeArray(seen?.elements ?? [])
        case .dictionary: changeDictionary(seen?.entries ?? [:])
        case .register:
            let siblings = process.engine.contents.filter { $0.key.whole == key }
            let replaced = siblings.values.filter { seen == known || seen == $0 }
                .compactMap { AppProposal.number(in: $0) }.sorted()
            propose(
                Proposal(policy, from: seen, to: AppProposal.value(number)), .replace(replaced))
        }

        func propose(_ proposal: Proposal, _ act: AppProposal.Act) {
            self.propose(proposal, key, number, process) { _ in act }
        }

        func changeArray(_ elements: [PropertyListValue]) {
            if !elements.isEmpty, world.chance.perMille(400) {
                let removed = world.chance.pick(elements)
                let rest = elements.filter { $0 != removed }
                propose(
                    Proposal(policy, from: seen, to: .array(rest)),
                    .remove(AppProposal.number(in: removed) ?? 0))
            } else {
                let all = elements + [AppProposal.value(number)]
                propose(Proposal(policy, from: seen, to: .array(all)), .add)
            }
        }

        func changeDictionary(_ entries: [ExactString: PropertyListValue]) {
            let field = world.chance.pick(Self.fields)
            let old = entries[ExactString(field)]
            var entries = entries
            if old != nil, world.chance.perMille(250) {
                entries[ExactString(field)] = nil
                propose(Proposal(policy, from: seen, to: .dictionary(entries)), .clear(field))
            } else {
                entries[ExactString(field)] = AppProposal.value(number)
                propose(
                    Proposal(policy, from: seen, to: .dictionary(entries)),
                    .put(field, over: AppProposal.number(in: old)))
            }
        }
    }

    /// Sets a field of a dictionary that others may have set as well, and removes it at once.
    func putAndClear(_ process: VirtualProcess) {
        let key = world.mergedKeys.first { $0.value == .dictionary }?.key
        guard let key else { return }
        let field = world.chance.pick(Self.fields)
        for isClearing in [false, true] {
            let seen = process.engine[key]
            var entries = seen?.entries ?? [:]
            let old = entries[ExactString(field)]
            let number = world.newWriteNumber()
            entries[ExactString(field)] = isClearing ? nil : AppProposal.value(number)
            let proposal = Proposal(.dictionary, from: seen, to: .dictionary(entries))
            let isDone = propose(proposal, key, number, process) { _ in
                isClearing ? .clear(field) : .put(field, over: AppProposal.number(in: old))
            }
            guard isDone else { return }
        }
    }

    // MARK: - Replacing everything

    private func erase(_ key: Key, _ policy: MergePolicy, _ process: VirtualProcess) {
        guard process.engine[key] != nil else { return }
        let seen = process.records(of: key)
        replace(key, process, by: .erase(seen: seen), world.newWriteNumber()) { [world] in
            guard world.chance.coin() else { return try process.write([key: .deleted]) }
            try process.propose(Proposal(policy, from: process.engine[key], to: nil), key)
        }
    }

    /// Writes like an app that declares no policy for the key.
    private func writePlainly(_ key: Key, _ policy: MergePolicy, _ process: VirtualProcess) {
        let number = world.newWriteNumber()
        let seen = process.records(of: key)
        replace(key, process, by: .write(seen: seen), number) {
            try process.write([key: .value(AppProposal.plain(number, policy))])
        }
    }

    private func replace(
        _ key: Key, _ process: VirtualProcess, by act: AppProposal.Act, _ number: Int,
        _ write: () throws -> Void
    ) {
        do { try write() } catch {
            return world.journal.note(.refused(process: process.number, [key]))
        }
        note(act, key, number, process)
    }

    // MARK: - Counting

    private func count(_ key: Key, _ number: Int, _ process: VirtualProcess) {
        // A multiple of a quarter, so that every order of adding gives the same sum.
        let amount: PropertyListValue =
            world.chance.perMille(200)
            ? .real(Double(world.chance.int64(1...9)) / 4) : .integer(world.chance.int64(1...9))
        // A run that repeats a kept count must be remembered, see decision 0024.
        let keeps = world.chance.perMille(300) && world.scenario.foldedMax == nil
        let kept = keeps ? keptCount(amount, key, process) : nil
        let proposal =
            kept.map { Proposal(count: $0) } ?? Proposal(.counter, from: .integer(0), to: amount)
        let isDone = propose(proposal, key, number, process) { changes in
            let runs = changes.filter { AppProposal.count(in: $0.after) != nil }
            let own = runs.min { $0.part.text.string.utf8.count < $1.part.text.string.utf8.count }
            guard let own, let times = AppProposal.count(in: own.after)?.times else {
                preconditionFailure("A counter was counted and did not change.")
            }
            return .count(part: own.part, times: times, amount: amount.amount ?? 0)
        }
        if isDone, let kept { world.keptCounts[process.disk.name, default: [:]][key] = kept }
    }

    /// The next count of a mirror of preferences, which keeps its counts beside the store.
    private func keptCount(
        _ amount: PropertyListValue, _ key: Key, _ process: VirtualProcess
    ) -> KeptCount? {
        let next = world.keptCounts[process.disk.name]?[key]?.adding(from: .integer(0), to: amount)
        if let next, !process.engine.hasCounted(moreThan: next, under: key) { return next }
        return KeptCount(run: world.chance.number()).adding(from: .integer(0), to: amount)
    }

    /// A starting process repeats kept counts, which may not have reached the disk.
    /// - Returns: The keys for which the store refused it.
    func takeUpCounts(_ process: VirtualProcess) -> Set<Key> {
        guard let counts = world.keptCounts[process.disk.name] else { return [] }
        var refused: Set<Key> = []
        for (key, count) in counts.sorted(by: { $0.key < $1.key })
        where !process.engine.hasCounted(moreThan: count, under: key) {
            do { try process.propose(Proposal(count: count), key) } catch { refused.insert(key) }
        }
        return refused
    }

    // MARK: -

    private struct Change {
        var part: PartID
        var before: PropertyListValue?
        var after: PropertyListValue
    }

    /// - Parameter act: Makes the act from the parts that changed.
    /// - Returns: Whether the store accepted it.
    @discardableResult
    private func propose(
        _ proposal: Proposal, _ key: Key, _ number: Int, _ process: VirtualProcess,
        _ act: ([Change]) -> AppProposal.Act
    ) -> Bool {
        let before = process.records(of: key)
        do throws(LimitViolation) { try process.propose(proposal, key) } catch {
            world.journal.note(.refused(process: process.number, [key]))
            return false
        }
        remembered[key] = process.engine[key]
        let after = process.records(of: key)
        // A value that is not greater changes nothing.
        guard after != before else { return true }
        let changes = after.sorted { $0.key < $1.key }.compactMap { record in
            record.key.part.map {
                Change(part: $0, before: before[record.key], after: record.value)
            }
        }
        note(act(changes.filter { $0.before != $0.after }), key, number, process)
        return true
    }

    private func note(
        _ act: AppProposal.Act, _ key: Key, _ number: Int, _ process: VirtualProcess
    ) {
        world.journal.note(
            .proposed(
                AppProposal(
                    number: number, process: process.number, disk: process.disk.name, key: key,
                    act: act, seen: process.engine[key], time: world.now)))
    }
}

extension VirtualProcess {
    /// All records of a key in the store.
    fileprivate func records(of key: Key) -> [Key: PropertyListValue] {
        engine.contents.filter { $0.key.whole == key }
    }
}

extension PropertyListValue {
    fileprivate var elements: [PropertyListValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    fileprivate var entries: [ExactString: PropertyListValue] {
        if case .dictionary(let entries) = self { entries } else { [:] }
    }
}
