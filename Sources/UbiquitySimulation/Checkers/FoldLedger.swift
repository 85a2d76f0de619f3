// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The increments that servers have folded, with the acts in them.
struct FoldLedger {
    private struct Noted {
        var increment: FoldedIncrement
        /// When it was folded, or last changed.
        var revision: Int64
    }

    private struct Moment: Hashable {
        var fold: Key
        var times: Int64
    }

    /// In commit order, and the last of each.
    private var log: [StoreReference: [Noted]] = [:]
    private var noted: [StoreReference: [FoldedIncrement.ID: FoldedIncrement]] = [:]
    /// The acts in a fold, including those removed since, by the fold's number of times.
    private var acts: [Moment: [Int]] = [:]
    /// The runs for which a server went back to before they were folded, or removed after folding.
    private(set) var unsettled: Set<Key> = []

    /// - Parameter numbers: The acts in an increment.
    mutating func note(_ commit: Commit, _ numbers: (FoldedIncrement) -> [Int]) {
        guard let folded = commit.folded else { return }
        for increment in folded {
            noted[commit.store, default: [:]][increment.id] = increment
            log[commit.store, default: []].append(
                Noted(increment: increment, revision: commit.position.revision))
        }
        for write in commit.writes where write.key.part == PartID("c+") {
            guard let times = AppOperation.count(in: write.content.value)?.times else { continue }
            acts[Moment(fold: write.key, times: times)] = increments(of: write.key, commit.store)
                .flatMap(numbers)
        }
    }

    /// Records everything that servers have folded, which commits may not have mentioned.
    mutating func note(_ folded: [StoreReference: [FoldedIncrement]]) {
        for (store, increments) in folded {
            for increment in increments { noted[store, default: [:]][increment.id] = increment }
        }
    }

    private func increments(of key: Key, _ store: StoreReference) -> [FoldedIncrement] {
        noted[store, default: [:]].values.filter { $0.run.whole == key.whole }
    }

    /// Checks that a fold is the sum of its acts that are not removed.
    func complaint(_ commit: Commit) -> String? {
        if commit.folded == nil { return nil }
        for write in commit.writes where write.key.isOfFold {
            let key = write.key.whole
            let fold = count(key, "c+", commit)
            let removal = count(key, "c-+", commit)
            let left = increments(of: key, commit.store).filter {
                !$0.isRemoved && $0.mark.rawValue > removal.times
            }
            let sum = left.reduce(0) { $0 + ($1.amount.value.amount ?? 0) }
            let shown = fold.times > removal.times ? fold.total + removal.total : 0
            if shown != sum {
                return "the fold of \(key) in \(commit.store) shows \(shown), and has \(sum)"
            }
        }
        return nil
    }

    private func count(_ key: Key, _ part: String, _ commit: Commit) -> (
        times: Int64, total: Double
    ) {
        PartID(part).flatMap { AppOperation.count(in: commit.after[key.part($0)]?.content.value) }
            ?? (0, 0)
    }

    /// The acts in a fold, including those removed since.
    ///
    /// - Parameter numbers: The acts in an increment.
    func numbers(
        _ fold: Key, _ times: Int64, _ numbers: (FoldedIncrement) -> [Int]
    ) -> [Int] {
        if let acts = acts[Moment(fold: fold, times: times)] { return acts }
        guard fold.part == PartID("c+") else { return [] }
        return noted.values.flatMap(\.values).filter {
            $0.run.whole == fold.whole && $0.mark.rawValue <= times
        }.flatMap(numbers)
    }

    /// A server becomes an older copy of itself.
    /// - Returns: The increments folded since.
    mutating func goBack(
        to positions: [StoreReference: Position]
    ) -> [(store: StoreReference, increment: FoldedIncrement)] {
        var lost: [(StoreReference, FoldedIncrement)] = []
        for (store, all) in log {
            let last = positions[store]?.revision ?? 0
            let kept = all.filter { $0.revision <= last }
            for known in all where known.revision > last {
                unsettled.insert(known.increment.run)
                guard known.increment.mark.revision > last else { continue }
                lost.append((store, known.increment))
            }
            log[store] = kept
            noted[store] = Dictionary(kept.map { ($0.increment.id, $0.increment) }) { $1 }
        }
        return lost
    }
}
