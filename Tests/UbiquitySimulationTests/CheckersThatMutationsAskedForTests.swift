// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// Violations that no checker noticed until something was broken on purpose.
struct CheckersThatMutationsAskedForTests: SmallHistory {
    @Test func `a first sync that keeps what the server's values replace`() {
        func received(own: Set<Key>) -> Observation {
            .received(
                process: 1, store, Position(epoch: 1, revision: 1), values: [:], own: own)
        }
        let discarded = Observation.discarded(disk: disk, [key])
        let changed = Observation.changed(process: 1, [key], .firstDownload)
        let start = [opened(), discarded, changed]
        #expect(complaint(FirstSyncChecker(), start + [received(own: [key])]) != nil)
        #expect(complaint(FirstSyncChecker(), start + [received(own: [other])]) == nil)
        let written = Observation.wrote(process: 1, [write(1, of: key, batch: 0)])
        #expect(complaint(FirstSyncChecker(), start + [written, received(own: [key])]) == nil)
    }

    @Test func `a write that was sent from memory`() {
        let saved = Observation.pushes(process: 1, Push([]))
        let unsaved = Observation.pushes(process: 1, Push([]), unsaved: [key])
        #expect(complaint(SavedFirstChecker(), [opened(), saved]) == nil)
        #expect(complaint(SavedFirstChecker(), [opened(), unsaved]) != nil)
    }

    @Test func `a disk that refuses, of which an app is not told`() {
        func shows(_ failure: String?) -> Observation {
            .showsDisk(process: 1, failure: failure)
        }
        let refused = [opened(), Observation.endedSave(process: 1, isRefused: true)]
        let synchronized = Observation.synchronized(process: 1)
        #expect(complaint(DiskChecker(), refused + [shows(nil)]) != nil)
        #expect(complaint(DiskChecker(), refused + [shows("")]) != nil)
        #expect(complaint(DiskChecker(), refused + [shows("full"), synchronized]) != nil)
        let saved = Observation.endedSave(process: 1, isRefused: false)
        let all = refused + [shows("full"), saved, shows(nil), synchronized]
        #expect(complaint(DiskChecker(), all) == nil)
    }

    @Test func `what is said to be on a disk that does not have it`() throws {
        let record = record(write(1, of: key, batch: 0))
        let commit = try commit([], [record], pushed: [record])
        func tells(_ values: [Key: PropertyListValue], own: Set<Key> = []) -> [Observation] {
            guard case .committed(let committed) = commit else { return [] }
            return [
                commit,
                .tells(
                    process: 1, committed.store, committed.position, values: values, own: own),
            ]
        }
        #expect(complaint(CursorChecker(), tells([:])) != nil)
        #expect(complaint(CursorChecker(), tells([:], own: [key])) == nil)
        let value = try #require(record.content.value)
        #expect(complaint(CursorChecker(), tells([key: value])) == nil)
    }

    @Test func `a part of a transaction without the key that has been written again since`() throws
    {
        let first = write(1, of: key, batch: 1)
        let both = [write(2, of: key, batch: 2, over: 1), write(3, of: other, batch: 2)]
        let last = write(4, of: key, batch: 3, over: 2)
        let start = [opened()] + [[first], both, [last]].map { Observation.wrote(process: 1, $0) }
        func committed(_ present: AppWrite) throws -> Observation {
            let part = record(both[1])
            return try commit([], [record(present), part], pushed: [part])
        }
        let checker = { BatchChecker(groups: []) }
        #expect(complaint(checker(), start + [try committed(first)]) != nil)
        #expect(complaint(checker(), start + [try committed(both[0])]) == nil)
        #expect(complaint(checker(), start + [try committed(last)]) == nil)
        // Who restores a copy may bring anything back.
        #expect(
            complaint(checker(), start + [.serverRestored([:]), try committed(first)]) == nil)
    }

    @Test func `a refusal for the quota of what fits`() throws {
        let refused = TransactionResult.refused(Refusal(code: "quota-keys", detail: ""))
        let (old, new) = (record(write(1, of: key, batch: 0)), write(2, of: key, batch: 0))
        var limits = StoreLimits()
        limits.keysMax = 1
        let replaces = try commit(
            [old], [old], pushed: [record(new, at: 2)], result: refused, limits: limits)
        #expect(complaint(QuotaChecker(), [replaces]) != nil)
        let adds = try commit(
            [old], [old], pushed: [record(write(2, of: other, batch: 0))], result: refused,
            limits: limits)
        #expect(complaint(QuotaChecker(), [adds]) == nil)
    }

    @Test func `a refusal for a deletion, but for what a clone sent in another order`() throws {
        let refused = TransactionResult.refused(Refusal(code: "older-than-forgotten", detail: ""))
        let (first, last) = (write(1, of: key, batch: 0), write(2, of: key, batch: 0, over: 1))
        let saved = Observation.saves(
            process: 1,
            [StoredEntry(key: key, pending: PendingWrite(record: record(first), transaction: 1))],
            nil)
        let start = [opened()] + [first, last].map { .wrote(process: 1, [$0]) } + [saved]
        let later = record(write(3, of: other, batch: 0), at: 2)
        let decided = try commit([], [later], pushed: [later])
        let refusal = try commit([], [], pushed: [record(last, at: 3)], result: refused)
        let cloned = Observation.cloned(device: 2, from: 1)
        #expect(complaint(CommitChecker(), start + [decided, refusal]) != nil)
        #expect(complaint(CommitChecker(), start + [cloned, refusal]) != nil)
        #expect(complaint(CommitChecker(), start + [cloned, decided, refusal]) == nil)
    }

    @Test
    func `a refusal for a deletion, but for the author's own that was sent in place of a write`()
        throws
    {
        let refused = TransactionResult.refused(Refusal(code: "older-than-forgotten", detail: ""))
        let first = write(1, of: key, batch: 0)
        let deletion = write(2, of: key, batch: 0, over: 1, isDeletion: true)
        let last = write(3, of: key, batch: 0, over: 2)
        let saved = Observation.saves(
            process: 1,
            [StoredEntry(key: key, pending: PendingWrite(record: record(first), transaction: 1))],
            nil)
        let start =
            [opened(), .wrote(process: 1, [first]), saved]
            + [deletion, last].map { .wrote(process: 1, [$0]) }
        let gone = record(deletion, at: 2)
        let decided = try commit([], [gone], pushed: [gone])
        let refusal = try commit([], [], pushed: [record(last, at: 3)], result: refused)
        #expect(complaint(CommitChecker(), start + [refusal]) != nil)
        #expect(complaint(CommitChecker(), start + [decided, refusal]) == nil)
    }

    @Test func `a write that was not parked when its process turned to another account`() {
        let checker = SurvivalChecker(timeTolerance: nil, keepsStamps: true)
        let written = Observation.wrote(process: 1, [write(1, of: key, batch: 0)])
        let settled = Observation.settled(Settlement(server: [:], processes: []))
        let elsewhere = DiskReference(device: 1, folder: "2", store: 0)
        #expect(
            complaint(
                checker, [signedIn, opened(), written, .moved(process: 1, elsewhere), settled])
                != nil)
    }

    @Test func `what waited on a disk that was copied may come twice`() throws {
        let writes = [write(1, of: key, batch: 1), write(2, of: key, batch: 2, over: 1)]
        let start = [signedIn, opened(), .wrote(process: 1, [writes[0]])]
        let rest = [
            try commit([], [record(writes[0])], pushed: [record(writes[0])]),
            .wrote(process: 1, [writes[1]]),
            try commit([], [record(writes[1])], pushed: [record(writes[1])]),
            .lost(disk),
            .settled(Settlement(server: [store: [key: record(writes[0], at: 3)]], processes: [])),
        ]
        func survival() -> SurvivalChecker {
            SurvivalChecker(timeTolerance: nil, keepsStamps: true)
        }
        #expect(complaint(survival(), start + [.copied(device: 1)] + rest) == nil)
        #expect(complaint(survival(), start + rest) != nil)
    }

    @Test func `the clone of a clone may send what its first original wrote`() throws {
        let written = write(1, of: key, batch: 0)
        let committed = try commit([], [record(written)], pushed: [record(written)])
        let clones = [
            Observation.cloned(device: 2, from: 1), .cloned(device: 3, from: 2),
            .signedIn(device: 3, folder: "1", account: 1),
        ]
        let start = [opened(), Observation.wrote(process: 1, [written])]
        #expect(complaint(AccountChecker(), start + clones + [committed]) == nil)
        #expect(complaint(AccountChecker(), start + [committed]) != nil)
    }
}
