// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Everything acknowledged, by `synchronize()` or by the server, is there in the end, or something
/// that rightly replaced it. Nothing that was replaced or deleted comes back.
///
/// A write is *certainly later* than another if its author had seen the other, or if it was made so
/// much later that no effect of clocks and network can have confused the times. In the end, no
/// acknowledged write may be certainly later than what is there. A write that its author had seen
/// may be there all the same if the network delivered it late, see ``SendingLedger``.
///
/// The contract permits some losses: writes that a limit refused, that a first sync discarded, or
/// that were on a disk lost before they were sent, together with what they had replaced there.
package final class SurvivalChecker: Checker {
    /// Nil if times prove nothing in this run.
    private(set) var clocks: ClockLedger?
    /// When the server last accepted each write.
    private(set) var commitTimes: [Int: Int64] = [:]
    let keepsStamps: Bool
    private(set) var ledger = FateLedger()
    /// For each write, the one that its author had seen there.
    private(set) var predecessors: [Int: Int] = [:]
    /// Writes that were sent with two stamps, or may be because they waited on a disk when it was
    /// copied. The network may deliver the refused form once more.
    private(set) var doubled: Set<Int> = []
    private(set) var sendings = SendingLedger()
    /// The writes that waited when a device's disks were last copied.
    private var copied: [Int: Set<Int>] = [:]
    /// The keys whose tombstone a server has dropped. It accepts writes that it never had there,
    /// however old.
    private(set) var compacted: [StoreReference: Set<Key>] = [:]
    /// At the end, the deletions of each key.
    var deletions: [Key: [AppWrite]] = [:]

    /// - Parameters:
    ///   - timeTolerance: How much the times of two writes may be out of order even if no clock is
    ///     set, in milliseconds. Nil if times prove nothing.
    ///   - keepsStamps: False if even writes that were on the server may get new stamps.
    package init(timeTolerance: Int64?, keepsStamps: Bool) {
        clocks = timeTolerance.map { ClockLedger(lag: $0 / 2) }
        self.keepsStamps = keepsStamps
    }

    package func check(_ observation: Observation, _ history: History) -> String? {
        ledger.note(observation)
        clocks?.note(observation)
        switch observation {
        case .wrote(let process, let writes): note(writes, of: process)
        case .committed(let commit) where commit.isWhole:
            let deletions = commit.before.values.filter { $0.content == .deleted }
            compacted[commit.store, default: []].formUnion(deletions.map(\.key))
        case .committed(let commit):
            ledger.note(commit.writes.compactMap { Mark($0.content.value)?.number }, in: commit)
            noteTime(of: commit)
            sendings.note(commit)
            return overtaken(in: commit, history)
        case .saves(let process, let entries, _):
            if let disk = history.disks[process] { sendings.note(entries, on: disk) }
        case .pushes(let process, let push, _, _): note(push, on: history.disks[process], history)
        case .withdrawn(let disk, let records): withdraw(records, on: disk, history)
        case .discarded(let disk, let keys):
            ledger.excuse(writes(on: disk, history) { keys.contains($0.key) })
        case .cloned(let device, _): doubled.formUnion(unsent(on: device, history))
        case .copied(let device): copied[device] = unsent(on: device, history)
        case .lost(let disk):
            doubled.formUnion(unsent(on: disk.device, history).union(copied[disk.device] ?? []))
            excuseUnsent(on: disk, history) { [self] in !ledger.isKept($0.number) }
        case .compacted(let store, let deletions, _, _):
            compacted[store, default: []].formUnion(deletions.map(\.key))
        case .wiped(let disk): excuseUnsent(on: disk, history)
        case .settled(let settlement): return judge(settlement, history)
        default: break
        }
        return nil
    }

    // MARK: - The outcome of each write

    private func note(_ writes: [AppWrite], of process: Int) {
        for write in writes {
            predecessors[write.number] = write.over
            ledger.note(write.number, by: process, on: write.disk)
        }
    }

    private func note(_ push: Push, on disk: DiskReference?, _ history: History) {
        for write in push.transactions.flatMap(\.writes) {
            guard let number = number(of: write, on: disk, history) else { continue }
            if sendings.note(write, of: number, on: disk) { doubled.insert(number) }
        }
    }

    /// A deletion has no mark: it is the last one under its key.
    private func number(of record: Record, on disk: DiskReference?, _ history: History) -> Int? {
        if let mark = Mark(record.content.value) { return mark.number }
        guard let disk, record.content == .deleted else { return nil }
        return writes(on: disk, history) { $0.key == record.key && $0.value == nil }.last
    }

    private func noteTime(of commit: Commit) {
        for write in commit.writes {
            if let number = Mark(write.content.value)?.number {
                commitTimes[number] = commit.serverMilliseconds
            }
        }
    }

    /// Checks that of two values under a key, the server never holds the one that was certainly
    /// made earlier.
    private func overtaken(in commit: Commit, _ history: History) -> String? {
        for (transaction, result) in zip(commit.push.transactions, commit.results) {
            guard case .committed(let results) = result else { continue }
            for case (let write, .superseded(let held)) in zip(transaction.writes, results) {
                guard let loser = history.write(of: write), let winner = history.write(of: held),
                    isCertainlyLater(loser, than: winner, history)
                else { continue }
                return "\(commit.store) has write \(winner.number) of \(write.key), and write "
                    + "\(loser.number) was later"
            }
        }
        return nil
    }

    /// The writes that a device may still have to send: its own, or those of its original.
    private func unsent(on device: Int, _ history: History) -> Set<Int> {
        let original = history.original(of: device)
        return Set(
            history.writes.values.lazy.filter { [self] write in
                !ledger.isCommitted(write.number)
                    && history.original(of: write.disk.device) == original
            }.map(\.number))
    }

    private func excuseUnsent(
        on disk: DiskReference, _ history: History,
        where isMeant: (AppWrite) -> Bool = { _ in true }
    ) {
        let store = history.owner(of: disk).map { StoreReference(account: $0, store: disk.store) }
        ledger.excuse(
            writes(on: disk, history) { write in
                let isSent = store.map { ledger.isCommitted(write.number, to: $0) } ?? false
                return !isSent && isMeant(write)
            })
    }

    private func writes(
        on disk: DiskReference, _ history: History, where isMeant: (AppWrite) -> Bool
    ) -> [Int] {
        ledger.numbers(on: disk).filter { history.writes[$0].map(isMeant) ?? false }
    }

    /// Excuses the loss of withdrawn writes, and of the unsent writes that they had replaced there.
    private func withdraw(_ records: [Record], on disk: DiskReference, _ history: History) {
        for record in records {
            let last = number(of: record, on: disk, history).flatMap { history.writes[$0] }
            guard let last else { continue }
            // Another process may have had a better estimate of the server's time, so a write that
            // seems later to everybody else may not be.
            excuseUnsent(on: disk, history) { write in
                write.key == record.key
                    && (write.time <= last.time + 1
                        || write.process != last.process
                            && !isCertainlyLater(write, than: last, history))
            }
        }
    }
}

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
        guard let clocks, doubled.isDisjoint(with: [write.number, other.number]) else {
            return false
        }
        return clocks.isLater(write, than: other, committed: commitTimes[other.number])
    }
}
