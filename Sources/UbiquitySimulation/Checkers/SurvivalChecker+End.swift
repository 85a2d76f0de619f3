// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

extension SurvivalChecker {
    func judge(_ settlement: Settlement, _ history: History) -> String? {
        deletions = Dictionary(
            grouping: history.writes.values.filter { $0.value == nil }, by: \.key)
        for write in history.writes.values.sorted(by: { $0.number < $1.number })
        where ledger.isAcknowledged(write.number) {
            guard let store = home(of: write, history) else { continue }
            let present = settlement.server[store]?[write.key]?.content.value
            if let complaint = compare(write, with: present, in: store, history) {
                return complaint
            }
        }
        return nil
    }

    /// The store that the write belongs to; nil if nobody signed in while its folder was in use.
    private func home(of write: AppWrite, _ history: History) -> StoreReference? {
        history.owner(of: write.disk).map { StoreReference(account: $0, store: write.disk.store) }
    }

    private func compare(
        _ write: AppWrite, with present: PropertyListValue?, in store: StoreReference,
        _ history: History
    ) -> String? {
        let name = "write \(write.number) of \(write.key) by process \(write.process)"
        guard let present else {
            guard write.value != nil, !mayHaveBeenDeleted(write, in: store, history) else {
                return nil
            }
            return "\(name) was acknowledged, and \(store) has nothing there"
        }
        guard let mark = Mark(present), mark.number != write.number,
            let winner = history.writes[mark.number], isCertainlyLater(write, than: winner, history)
        else { return nil }
        if compacted[store]?.contains(write.key) ?? false,
            mayHaveBeenDeleted(write, in: store, history)
        {
            return nil
        }
        return "\(name) was acknowledged, and \(store) has the earlier write \(mark.number)"
    }

    /// Whether somebody deleted the key, possibly later.
    private func mayHaveBeenDeleted(
        _ write: AppWrite, in store: StoreReference, _ history: History
    ) -> Bool {
        deletions[write.key, default: []].contains { deletion in
            deletion.disk.store == store.store
                && history.owners(ofWritesOn: deletion.disk).contains(store.account)
                && !isCertainlyLater(write, than: deletion, history)
        }
    }

    func isCertainlyLater(
        _ write: AppWrite, than other: AppWrite, _ history: History
    ) -> Bool {
        if isLaterByTime(write, than: other) { return true }
        var seen = keepsStamps ? predecessors[write.number] : nil
        while let number = seen {
            if number == other.number {
                return !doubled.contains(number) && !sendings.late.contains(number)
            }
            // Nobody sees a later write, and a key may have a long history.
            if let time = history.writes[number]?.time, time < other.time { return false }
            seen = predecessors[number]
        }
        return false
    }

    /// Writes that waited when their disk was copied may have been stamped by another machine's
    /// clocks.
    private func isLaterByTime(_ write: AppWrite, than other: AppWrite) -> Bool {
        guard let clocks, doubled.isDisjoint(with: [write.number, other.number]),
            let greatest = clocks.greatest(other, committed: commitTimes[other.number])
        else { return false }
        return clocks.least(write) > greatest
    }
}
