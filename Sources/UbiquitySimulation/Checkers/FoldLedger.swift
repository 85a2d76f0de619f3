// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// What servers have folded of counts, with the acts that are in there.
struct FoldLedger {
    private struct Noted {
        var increment: FoldedIncrement
        /// When it was folded, or changed last.
        var revision: Int64
    }

    private struct Moment: Hashable {
        var fold: Key
        var times: Int64
    }

    private var noted: [StoreName: [FoldedIncrement.ID: Noted]] = [:]
    /// The acts that are in a fold, or were before somebody removed them, by its number of times.
    private var acts: [Moment: [Int]] = [:]
    /// The runs of which a server went back to before they were folded, or removed when they were.
    private(set) var unsettled: Set<Key> = []

    /// - Parameter numbers: The acts that are in an increment.
    mutating func note(_ commit: Commit, _ numbers: (FoldedIncrement) -> [Int]) {
        for increment in commit.folded {
            noted[commit.store, default: [:]][increment.id] = Noted(
                increment: increment, revision: commit.position.revision)
        }
        for write in commit.writes where write.key.part == PartID("c+") {
            guard let times = AppProposal.count(in: write.content.value)?.times else { continue }
            acts[Moment(fold: write.key, times: times)] = noted[commit.store, default: [:]].values
                .filter { $0.increment.run.whole == write.key.whole }
                .flatMap { numbers($0.increment) }
        }
    }

    func numbers(_ fold: Key, _ times: Int64) -> [Int] {
        acts[Moment(fold: fold, times: times)] ?? []
    }

    /// A server becomes an older copy of itself.
    /// - Returns: What it had folded since.
    mutating func goBack(
        to positions: [StoreName: Position]
    ) -> [(store: StoreName, increment: FoldedIncrement)] {
        var lost: [(StoreName, FoldedIncrement)] = []
        for (store, all) in noted {
            let last = positions[store]?.revision ?? 0
            for (id, known) in all where known.revision > last {
                unsettled.insert(id.run)
                guard known.increment.mark.revision > last else { continue }
                noted[store]?[id] = nil
                lost.append((store, known.increment))
            }
        }
        return lost
    }
}
