// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension CommitChecker {
    /// A repeat must change nothing, whatever came in between.
    func wonAtLast(in commit: Commit) -> String? {
        guard let write = commit.writes.first(where: { isSuperseded($0, in: commit.store) })
        else { return nil }
        return "\(commit.store) took a write of \(write.key) that had lost to another before"
    }

    private func isSuperseded(_ write: Record, in store: StoreReference) -> Bool {
        !isCount(write) && superseded[store]?.contains(write) ?? false
    }

    func revived(in commit: Commit, _ history: History) -> String? {
        for write in commit.writes where write.content != .deleted {
            guard commit.before[write.key] == nil, !isCount(write) else { continue }
            if write.stamp.timestamp < commit.newestCompacted,
                let author = history.write(of: write), !hasGoneBack,
                hadFromOthers(author, history)
            {
                return "\(commit.store) took write \(author.number) of \(write.key), which its "
                    + "author had from another device, and which was deleted since"
            }
            guard let last = latest[commit.store]?[write.key], last.content == .deleted,
                isLater(last, than: write, isSealed: commit.isSealed),
                mayBeRepeated(write, in: commit)
            else { continue }
            return "\(commit.store) has brought back \(write.key) from before it was deleted"
        }
        return nil
    }

    /// Whether the author had seen something there that only the server can have brought, or its
    /// replacement.
    private func hadFromOthers(_ write: AppWrite, _ history: History) -> Bool {
        // A clone has its original's unsent writes.
        guard history.originals[write.disk.device] == nil else { return false }
        var write = write
        while let seen = write.over.flatMap({ history.writes[$0] }), seen.value != nil {
            if seen.disk.device != write.disk.device { return true }
            // It may have heard in between that the server has nothing there.
            let hasHeard = heard[write.disk]?.contains { seen.number <= $0 && $0 < write.number }
            if hasHeard ?? false { return false }
            write = seen
        }
        return false
    }

    private func mayBeRepeated(_ write: Record, in commit: Commit) -> Bool {
        Mark(write.content.value).map { known[commit.store]?.contains($0.number) ?? false }
            ?? false
    }

    /// Finds writes refused as deleted although neither had any author anything of the key from the
    /// server, nor had the server ever had it.
    func wronglyRefused(in commit: Commit, _ history: History) -> String? {
        for (transaction, result) in zip(commit.push.transactions, commit.results) {
            guard case .refused(let refusal) = result, refusal.code == "older-than-forgotten",
                transaction.writes.allSatisfy({ wasNever($0, on: commit, history) })
            else { continue }
            return "\(commit.store) refused \(transaction.writes.map(\.key)) for a deletion, and "
                + "never had any of it"
        }
        return nil
    }

    private func wasNever(_ write: Record, on commit: Commit, _ history: History) -> Bool {
        if write.content == .deleted { return true }
        guard let author = history.write(of: write), !hasDecided(about: write.stamp, commit.store)
        else { return false }
        let areInOrder =
            history.originals.isEmpty && commit.limits.pushBytesMax >= Self.orderedBytesMin
            && !hasClockGoneBack
        var number: Int? = author.number
        // A deletion is sent in place of the unsent write that it replaced, and hands it on.
        var isDeleted = false
        while let seen = number, let write = history.writes[seen] {
            if committed[commit.store]?.contains(seen) ?? false { return false }
            // Its author was notified of a later one.
            if superseded[commit.store]?.contains(where: { Mark($0.content.value)?.number == seen })
                ?? false
            {
                return false
            }
            // The answer with the refusal may be lost, so that its author does not know.
            let isRefused = refused[commit.store]?.contains(seen) ?? false
            if !areInOrder || isRefused || isDeleted, let stamp = stamps[seen],
                hasDecided(about: stamp, commit.store)
            {
                return false
            }
            isDeleted = isDeleted || write.value == nil
            number = write.over
        }
        return true
    }

    /// Transactions may arrive out of order from a clone, if transactions that overlap in time do
    /// not fit into a push, or if the server's clock was set back, because writes are then stamped
    /// anew. In these cases a write that replaced an unsent one may be refused after later ones of
    /// its author, as decision 0018 says. Otherwise they arrive in order.
    private static let orderedBytesMin = 4_096

    private func hasDecided(about stamp: Stamp, _ store: StoreReference) -> Bool {
        lastOfAuthors[store]?[stamp.device].map { stamp.timestamp <= $0 } ?? false
    }
}
