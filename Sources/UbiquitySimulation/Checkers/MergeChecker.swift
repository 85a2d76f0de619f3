// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Of keys whose writes merge, everybody sees the same in the end, and it is what all that was
/// acknowledged makes: no count is lost or doubled, no greater value gives way to a lesser one, what
/// was added is there unless somebody removed it, and what was removed is not.
///
/// The contract lets go what a limit refused, what a first sync discarded, and what was on a disk that
/// was lost before it was sent.
package final class MergeChecker: Checker {
    private let policies: [Key: MergePolicy]
    private var acts: [Int: AppProposal] = [:]
    private var ledger = FateLedger()
    /// Of each counter and run, what was done to it.
    private var counts: [Key: [Int]] = [:]
    /// An older copy took something's place: times prove nothing any more.
    private var hasGoneBack = false

    package init(policies: [Key: MergePolicy]) { self.policies = policies }

    package func check(_ observation: Observation, _ history: History) -> String? {
        if policies.isEmpty { return nil }
        ledger.note(observation)
        switch observation {
        case .proposed(let act): note(act)
        case .committed(let commit): note(commit)
        case .withdrawn(let disk, let records): excuse(Set(records.map(\.key)), on: disk)
        case .discarded(let disk, let keys): excuse(keys, on: disk)
        case .lost(let disk), .wiped(let disk):
            hasGoneBack = true
            ledger.excuse(unsent(on: disk) { _ in true })
        case .cloned, .serverRestored: hasGoneBack = true
        case .settled(let settlement): return judge(settlement, history)
        default: break
        }
        return nil
    }

    // MARK: - What became of each act

    private func note(_ act: AppProposal) {
        acts[act.number] = act
        ledger.note(act.number, by: act.process, on: act.disk)
        if case .count(let run, _, _) = act.act {
            counts[act.key.part(run), default: []].append(act.number)
        }
    }

    private func note(_ commit: Commit) {
        for write in commit.writes where write.key.isPart {
            ledger.note(numbers(in: write), in: commit)
        }
    }

    /// The acts whose outcome a record has.
    private func numbers(in record: Record) -> [Int] {
        guard let counts = counts[record.key] else {
            return AppProposal.number(in: record.content.value).map { [$0] } ?? []
        }
        guard let counted = AppProposal.total(in: record.content.value) else { return [] }
        return counts.filter { (acts[$0]?.total ?? .max) <= counted }
    }

    /// What was on its way there under these keys is gone.
    private func excuse(_ keys: Set<Key>, on disk: DiskName) {
        let wholes = Set(keys.map(\.whole))
        ledger.excuse(unsent(on: disk) { wholes.contains($0.key) })
    }

    private func unsent(on disk: DiskName, where isMeant: (AppProposal) -> Bool) -> [Int] {
        ledger.numbers(on: disk).filter { number in
            !ledger.isCommitted(number) && acts[number].map(isMeant) ?? false
        }
    }

    // MARK: - The end

    private func judge(_ settlement: Settlement, _ history: History) -> String? {
        for (store, records) in settlement.server.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            for (key, policy) in policies.sorted(by: { $0.key < $1.key }) {
                let parts = records.values.filter {
                    $0.key.isPart && $0.key.whole == key && $0.content.value != nil
                }
                let mine = acts.values.filter { act in
                    act.key == key && act.disk.store == store.store
                        && history.owners(ofWritesOn: act.disk).contains(store.account)
                }
                let made = Made(
                    acts: mine.sorted { $0.number < $1.number },
                    sure: mine.filter {
                        ledger.isAcknowledged($0.number)
                            && history.owner(of: $0.disk) == store.account
                    }.sorted { $0.number < $1.number })
                if let complaint = judge(policy, parts, made) {
                    return "\(store), \(key): \(complaint)"
                }
                if let complaint = differing(settlement, store, key, policy, parts) {
                    return complaint
                }
            }
        }
        return nil
    }

    private struct Made {
        /// Everything that may have come to this store.
        var acts: [AppProposal]
        /// What must have.
        var sure: [AppProposal]
    }

    private func differing(
        _ settlement: Settlement, _ store: StoreName, _ key: Key, _ policy: MergePolicy,
        _ parts: [Record]
    ) -> String? {
        let there = settlement.processes.filter {
            $0.account == store.account && $0.disk.store == store.store
        }
        guard let first = there.first else { return nil }
        let shown = first.merged[key]
        if let other = there.first(where: { $0.merged[key] != shown }) {
            return "processes \(first.number) and \(other.number) make different values of \(key): "
                + "\(String(describing: shown)), \(String(describing: other.merged[key]))"
        }
        return isMade(of: parts, shown, policy)
            ? nil : "\(store) shows \(String(describing: shown)) under \(key), of \(parts)"
    }

    /// Whether a value is what these parts make, by the contract's word.
    private func isMade(
        of parts: [Record], _ shown: PropertyListValue?, _ policy: MergePolicy
    ) -> Bool {
        let values = parts.compactMap(\.content.value)
        switch (policy, shown) {
        case (.array, .array(let elements)):
            return Set(elements) == Set(values) && Set(elements).count == elements.count
        case (.dictionary, .dictionary(let entries)):
            return parts.count == entries.count
                && parts.allSatisfy { part in
                    let field = part.key.part!.text.string.dropFirst()
                    return entries[ExactString(String(field))] == part.content.value
                }
        case (.counter, .integer(let count)):
            return values.compactMap { AppProposal.total(in: $0) }.reduce(0, +) == count
        case (.maximum, .integer): return values.allSatisfy { !($0.offered > shown!.offered) }
        case (.register, .some): return values.contains(shown!)
        case (_, nil): return parts.isEmpty
        default: return false
        }
    }

    private func judge(_ policy: MergePolicy, _ parts: [Record], _ made: Made) -> String? {
        switch policy {
        case .counter: judgeCounter(parts, made)
        case .maximum, .minimum: judgeGreatest(parts, made)
        case .array: judgeElements(parts, made)
        case .dictionary: judgeFields(parts, made)
        case .register: judgeSiblings(parts, made)
        }
    }

    /// Each run's count is one that it had, and not less than what was acknowledged.
    private func judgeCounter(_ parts: [Record], _ made: Made) -> String? {
        var counted: [PartID: Int64] = [:]
        for part in parts {
            if let total = AppProposal.total(in: part.content.value) {
                counted[part.key.part!] = total
            }
        }
        for (run, total) in counted.sorted(by: { $0.key < $1.key })
        where !made.acts.contains(where: { $0.run == run && $0.total == total }) {
            return "the run \(run) has counted \(total), and never had"
        }
        for act in made.sure {
            guard let run = act.run, let total = act.total else { continue }
            if counted[run] ?? 0 < total {
                return "act \(act.number), acknowledged, made \(total) of the run \(run), "
                    + "and \(counted[run] ?? 0) is left"
            }
        }
        return nil
    }

    private func judgeGreatest(_ parts: [Record], _ made: Made) -> String? {
        let offers = Set(made.acts.map(\.number))
        let values = parts.compactMap { part -> Int64? in
            if case .integer(let value)? = part.content.value { value } else { nil }
        }
        if let foreign = values.first(where: { !offers.contains(Int($0 % 10_000_000)) }) {
            return "nobody ever offered \(foreign)"
        }
        for act in made.sure {
            guard case .offer(let offer) = act.act, values.max() ?? .min < offer else { continue }
            return "act \(act.number) offered \(offer), acknowledged, and the greatest is "
                + "\(values.max().map(String.init) ?? "nothing")"
        }
        return nil
    }

    private func judgeElements(_ parts: [Record], _ made: Made) -> String? {
        let present = Set(parts.compactMap { AppProposal.number(in: $0.content.value) })
        let added = Set(made.acts.filter { $0.act == .add }.map(\.number))
        if let foreign = present.subtracting(added).min() { return "nobody added \(foreign)" }
        let removed = Set(made.acts.compactMap(\.removed))
        for act in made.sure {
            if act.act == .add, !present.contains(act.number), !removed.contains(act.number) {
                return "the element of act \(act.number), acknowledged, is gone"
            }
            // An older copy of the server may get it again from who has not heard.
            if let element = act.removed, present.contains(element), !hasGoneBack {
                return "act \(act.number) removed the element of \(element), and it is there"
            }
        }
        return nil
    }

    private func judgeFields(_ parts: [Record], _ made: Made) -> String? {
        for field in Set(made.acts.compactMap(\.field)).sorted() {
            let acts = made.acts.filter { $0.field == field }
            let present = parts.first { $0.key.part?.text.string == "d\(field)" }
                .flatMap { AppProposal.number(in: $0.content.value) }
            if let present, !acts.contains(where: { $0.number == present && !$0.isClearing }) {
                return "nobody put \(present) into \(field)"
            }
            let isCleared = acts.contains(where: \.isClearing)
            for act in made.sure where act.field == field && !act.isClearing {
                guard let present else {
                    if isCleared { continue }
                    return "the field \(field), where act \(act.number) put something, is gone"
                }
                if !hasGoneBack, replaced(present, by: act) {
                    return "the field \(field) has \(present), which act \(act.number) replaced"
                }
            }
        }
        return nil
    }

    /// Whether the author of a put had seen another one there, or one that had replaced that.
    private func replaced(_ number: Int, by act: AppProposal) -> Bool {
        var seen = act.over
        while let over = seen {
            if over == number { return true }
            seen = acts[over]?.over
        }
        return false
    }

    private func judgeSiblings(_ parts: [Record], _ made: Made) -> String? {
        let present = Set(parts.compactMap { AppProposal.number(in: $0.content.value) })
        if let foreign = present.subtracting(made.acts.map(\.number)).min() {
            return "nobody put \(foreign) there"
        }
        let replaced = Set(made.acts.flatMap(\.replaced))
        for act in made.sure where !present.contains(act.number) && !replaced.contains(act.number) {
            return "what act \(act.number) put there, acknowledged, is gone, and nobody replaced it"
        }
        return nil
    }
}

extension PropertyListValue {
    fileprivate var offered: Int64 { if case .integer(let offer) = self { offer } else { .min } }
}

extension AppProposal {
    fileprivate var run: PartID? { if case .count(let run, _, _) = act { run } else { nil } }
    fileprivate var total: Int64? { if case .count(_, _, let total) = act { total } else { nil } }
    fileprivate var removed: Int? { if case .remove(let number) = act { number } else { nil } }
    fileprivate var replaced: [Int] { if case .replace(let all) = act { all } else { [] } }
    fileprivate var over: Int? { if case .put(_, let over) = act { over } else { nil } }
    fileprivate var isClearing: Bool { if case .clear = act { true } else { false } }
    fileprivate var field: String? {
        switch act {
        case .put(let field, _), .clear(let field): field
        default: nil
        }
    }
}
