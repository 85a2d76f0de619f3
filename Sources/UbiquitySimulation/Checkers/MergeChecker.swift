// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// For keys whose writes merge, all devices finally see the same value, and it is the one given by
/// a plain description: a set of operations, with what the author of each had seen.
///
/// * A removal, and a write by an app that declares no policy, undoes everything that its author
///   had seen, for good. Among themselves they are writes of one value, the last of which wins.
/// * Counts, offers and additions are there as long as nobody who had seen them undid them.
///
/// Only losses that the contract permits are excused: an operation that a limit refused, that a
/// first sync discarded, or that was on a disk lost before it was sent.
package final class MergeChecker: Checker {
    private let policies: [Key: MergePolicy]
    private var acts: [Int: AppOperation] = [:]
    private var ledger = FateLedger()
    /// For each part, the acts that counted or offered there.
    private var runs: [Key: [Int]] = [:]
    /// Whether a server, or one of these devices, was replaced by an older copy. It may not know of
    /// a deletion whose tombstone all others have dropped, or it may send removed values again with
    /// a stamp of its own. That does not excuse removals that say how far they reach, of counters,
    /// maxima and minima.
    private var hasServerGoneBack = false
    private var copies: Set<Int> = []
    private var folds = FoldLedger()

    /// Nil if times prove nothing.
    private var clocks: ClockLedger?

    /// Whether accounts are sealed, from the beginning or later: parts get other names then, each raise
    /// of a maximum is a part, and an entry that two devices wrote at once is two.
    private let isSealed: Bool

    /// - Parameter timeTolerance: As for ``SurvivalChecker``.
    package init(
        policies: [Key: MergePolicy], timeTolerance: Int64? = nil, isSealed: Bool = false
    ) {
        self.policies = policies
        self.isSealed = isSealed
        clocks = timeTolerance.map { ClockLedger(lag: $0 / 2) }
    }

    package func check(_ observation: Observation, _ history: History) -> String? {
        if policies.isEmpty { return nil }
        ledger.note(observation)
        clocks?.note(observation)
        switch observation {
        case .merged(let act): note(act)
        case .committed(let commit):
            let folded = (commit.folded ?? []).flatMap(numbers(in:))
            for number in commit.writes.flatMap(numbers(in:)) + folded
            where !ledger.isCommitted(number, to: commit.store) {
                ledger.note([number], in: commit)
            }
            folds.note(commit) { [self] in numbers(in: $0) }
            return folds.complaint(commit)
        case .withdrawn(let disk, let records): excuse(records, on: disk)
        case .discarded(let disk, let keys): excuse(keys, on: disk) { $0.seenRecords != nil }
        case .lost(let disk):
            copies.insert(disk.device)
            ledger.excuse(unsent(on: disk) { [self] in !ledger.isKept($0.number) })
        case .wiped(let disk):
            copies.insert(disk.device)
            ledger.excuse(unsent(on: disk) { _ in true })
        case .cloned(let device, let original): copies.formUnion([device, original])
        case .serverRestored(let positions, _):
            hasServerGoneBack = true
            // No device has counts that were made and folded after the copy.
            for (store, increment) in folds.goBack(to: positions) {
                ledger.excuse(
                    numbers(in: increment).filter { !ledger.isCommitted($0, to: store) })
            }
        case .settled(let settlement): return judge(settlement, history)
        default: break
        }
        return nil
    }

    // MARK: - The outcome of each act

    private func note(_ act: AppOperation) {
        if let part = act.part { runs[act.key.part(part), default: []].append(act.number) }
        acts[act.number] = act
        ledger.note(act.number, by: act.process, on: act.disk)
    }

    /// The acts whose outcome a record contains.
    private func numbers(in records: [Key: PropertyListValue]) -> Set<Int> {
        var result: Set<Int> = []
        for (key, value) in records { result.formUnion(numbers(in: key, value)) }
        return result
    }

    private func numbers(in record: Record) -> [Int] {
        record.content.value.map { numbers(in: record.key, $0) } ?? []
    }

    private func numbers(in record: Key, _ value: PropertyListValue) -> [Int] {
        guard let policy = policies[record.whole] else { return [] }
        guard record.isPart else { return list(AppOperation.number(inPlain: value, policy)) }
        if policy == .counter {
            let times = AppOperation.count(in: value)?.times ?? 0
            return record.isOfFold
                ? folds.numbers(record, times, numbers(in:)) : counted(record, times)
        }
        return policy.isExtremum
            ? offered(record, AppOperation.integer(in: value), policy)
            : list(AppOperation.number(in: value))
    }

    private func numbers(in increment: FoldedIncrement) -> [Int] {
        runs[increment.run, default: []].filter { number in
            acts[number].map { $0.times > increment.after && $0.times <= increment.times } ?? false
        }
    }

    private func list(_ number: Int?) -> [Int] { number.map { [$0] } ?? [] }

    private func counted(_ part: Key, _ times: Int64) -> [Int] {
        runs[part, default: []].filter { acts[$0].map { $0.times <= times } ?? false }
    }

    /// A greater value of a run replaces its smaller ones.
    private func offered(_ part: Key, _ value: Int64?, _ policy: MergePolicy) -> [Int] {
        guard let value else { return [] }
        if isSealed {
            let number = AppOperation.number(in: .integer(value))
            return list(number.flatMap { acts[$0]?.offer == value ? $0 : nil })
        }
        return runs[part, default: []].filter { number in
            acts[number]?.offer.map { !policy.isBetter($0, than: value) } ?? false
        }
    }

    /// Excuses refused acts: those in these records, and those under way there that none of them
    /// mentions.
    private func excuse(_ records: [Record], on disk: DiskReference) {
        ledger.excuse(records.flatMap { numbers(in: $0) })
        excuse(Set(records.map(\.key)), on: disk) { act in
            switch act.act {
            case .count, .add: false
            case .offer(let part, _): isSealed || records.contains { $0.key.part == part }
            case .put(let field, _), .clear(let field):
                records.contains { record in
                    guard let part = record.key.part else { return true }
                    if part == PartID("d\(field)") { return true }
                    return part.isHiddenEntry
                        && AppOperation.field(in: record.content.value) ?? field == field
                }
            default: true
            }
        }
    }

    /// Acts under way there under these keys are lost.
    private func excuse(
        _ keys: Set<Key>, on disk: DiskReference,
        where isMeant: (AppOperation) -> Bool = { _ in true }
    ) {
        let wholes = Set(keys.map(\.whole))
        ledger.excuse(unsent(on: disk) { wholes.contains($0.key) && isMeant($0) })
    }

    private func unsent(on disk: DiskReference, where isMeant: (AppOperation) -> Bool) -> [Int] {
        ledger.numbers(on: disk).filter { number in
            !ledger.isCommitted(number) && acts[number].map(isMeant) ?? false
        }
    }

    // MARK: - The end

    private func judge(_ settlement: Settlement, _ history: History) -> String? {
        folds.note(settlement.folded)
        for (store, records) in settlement.server.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            for (key, policy) in policies.sorted(by: { $0.key < $1.key }) {
                // What a device has not taken, a person decides.
                let there = settlement.processes.filter { process in
                    process.account == store.account && process.disk.store == store.store
                        && !process.setAside.contains { $0.whole == key }
                }
                guard let first = there.first else { continue }
                let shown = first.merged[key]
                if let other = there.first(where: { $0.merged[key] != shown }) {
                    return "processes \(first.number) and \(other.number) make different values of "
                        + "\(key): \(text(shown)), \(text(other.merged[key]))"
                }
                let outcome = Expectation(
                    policy: policy, shown: shown,
                    records: records.filter { $0.key.whole == key && $0.value.content.value != nil }
                        .mapValues { $0.content.value! },
                    folded: (settlement.folded[store] ?? []).filter { $0.run.whole == key }
                        .map { ($0, numbers(in: $0)) },
                    unsettled: Set(folds.unsettled.flatMap { runs[$0] ?? [] }),
                    made: made(key, store, history), hasGoneBack: hasGoneBack(store, history),
                    clocks: clocks, isSealed: isSealed)
                if let complaint = outcome.complaint(numbers) {
                    return "\(store) shows \(text(shown)) under \(key): \(complaint)"
                }
            }
        }
        return nil
    }

    private func hasGoneBack(_ store: StoreReference, _ history: History) -> Bool {
        hasServerGoneBack
            || history.owners.contains { folder, account in
                account == store.account && copies.contains(folder.device)
            }
    }

    private func text(_ value: PropertyListValue?) -> String { value.map { "\($0)" } ?? "nothing" }

    private func made(_ key: Key, _ store: StoreReference, _ history: History) -> Expectation.Made {
        let mine = acts.values.filter { act in
            act.key == key && act.disk.store == store.store
                && history.owners(ofWritesOn: act.disk).contains(store.account)
        }.sorted { $0.number < $1.number }
        return Expectation.Made(
            acts: mine,
            sure: mine.filter {
                ledger.isAcknowledged($0.number) && history.owner(of: $0.disk) == store.account
                    // A refused addition may arrive again, when there is room.
                    && !($0.removed.map(ledger.isExcused) ?? false)
            },
            // Not earlier: the acts in a fold that somebody saw may only become known later.
            undone: Dictionary(
                uniqueKeysWithValues: mine.compactMap { act in
                    act.seenRecords.map { (act.number, numbers(in: $0)) }
                }),
            hidden: isSealed ? hidden(mine) : [])
    }

    /// The offers that may have been undone unnamed: who raised a maximum has deleted the smaller ones
    /// that he saw, and who removes it has undone all of them.
    private func hidden(_ acts: [AppOperation]) -> Set<Int> {
        var hidden: Set<Int> = []
        for seen in acts.compactMap(\.seenRecords) {
            for (key, value) in seen where key.isPart {
                guard let policy = policies[key.whole], policy.isExtremum,
                    let value = AppOperation.integer(in: value)
                else { continue }
                let smaller = acts.filter {
                    $0.offer.map { !policy.isBetter($0, than: value) } ?? false
                }
                hidden.formUnion(smaller.map(\.number))
            }
        }
        return hidden
    }
}

extension AppOperation {
    /// The part that contains the count or offer.
    fileprivate var part: PartID? {
        switch act {
        case .count(let part, _, _): part
        case .offer(let part, _): part
        default: nil
        }
    }

    var seenRecords: [Key: PropertyListValue]? {
        switch act {
        case .write(let seen): seen
        case .erase(let seen): seen
        default: nil
        }
    }

    fileprivate var times: Int64 { if case .count(_, let times, _) = act { times } else { .max } }
}
