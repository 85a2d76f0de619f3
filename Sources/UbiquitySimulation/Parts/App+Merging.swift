// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension App {
    private static let fields = ["f0", "f1", "f2"]

    /// Does something to a key whose writes merge.
    func merge(_ process: VirtualProcess) {
        let (key, policy) = world.chance.pick(world.mergedKeys.sorted { $0.key < $1.key })
        let number = world.newWriteNumber()
        // An app may go on from what it saw when it last wrote, as a mirror of preferences does.
        let known = process.engine[key]
        let seen = world.chance.coin() ? known : remembered[key] ?? known
        switch policy {
        case .counter: count(key, number, process)
        case .maximum, .minimum:
            let offer = AppProposal.offer(world.chance.int(1...1_000), number: number)
            propose(Proposal(policy, from: seen, to: .integer(offer)), .offer(offer))
        case .array: changeArray(seen?.elements ?? [])
        case .dictionary: changeDictionary(seen?.entries ?? [:])
        case .register:
            let siblings = process.engine.contents.filter { $0.key.isPart && $0.key.whole == key }
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

    private func count(_ key: Key, _ number: Int, _ process: VirtualProcess) {
        let amount = world.chance.int64(1...9)
        let proposal = Proposal(.counter, from: .integer(0), to: .integer(amount))
        let before = process.engine.contents
        propose(proposal, key, number, process) { after in
            // The one part that changed is the run's.
            let part = after.first { $0.key.whole == key && before[$0.key] != $0.value }
            guard let run = part?.key.part, let total = AppProposal.total(in: part?.value) else {
                preconditionFailure("A counter was counted and did not change.")
            }
            return .count(run: run, amount: amount, total: total)
        }
    }

    private func propose(
        _ proposal: Proposal, _ key: Key, _ number: Int, _ process: VirtualProcess,
        _ act: ([Key: PropertyListValue]) -> AppProposal.Act
    ) {
        do throws(LimitViolation) { try process.propose(proposal, key) } catch {
            return world.journal.note(.refused(process: process.number, [key]))
        }
        remembered[key] = process.engine[key]
        world.journal.note(
            .proposed(
                AppProposal(
                    number: number, process: process.number, disk: process.disk.name, key: key,
                    act: act(process.engine.contents), seen: process.engine[key])))
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
