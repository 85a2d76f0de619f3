// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@testable import UbiquitySimulation

/// Each checker objects to the smallest history that breaks its promise, and to none that keeps it.
struct CheckersTests: SmallHistory {
    private func settled(_ server: [Record], _ process: Settlement.Process? = nil) -> Observation {
        .settled(
            Settlement(
                server: [store: Dictionary(server.map { ($0.key, $0) }) { $1 }],
                processes: process.map { [$0] } ?? []))
    }

    // MARK: - Notifications

    @Test func `a change that nobody was told of`() {
        let changed = Observation.changed(process: 1, [key], .server)
        let notified = Observation.notified(
            process: 1, Notice(.serverChange, [key]), [key: .some(value(1))])
        let rested = Observation.rested(process: 1, values: [key: value(1)])
        #expect(complaint(NoticeChecker { 0 }, [opened(), changed, rested]) != nil)
        #expect(complaint(NoticeChecker { 0 }, [opened(), changed, notified, rested]) == nil)
    }

    @Test func `a notification for an own write, or for another reason`() {
        let notified = Observation.notified(
            process: 1, Notice(.serverChange, [key]), [key: .some(value(1))])
        #expect(complaint(NoticeChecker { 0 }, [opened(), wrote(1), notified]) != nil)
        let refused = Observation.refused(process: 1, [key])
        #expect(complaint(NoticeChecker { 0 }, [opened(), refused, notified]) != nil)
    }

    @Test func `a notification for each of many refused writes`() {
        let notified = Observation.notified(
            process: 1, Notice(.quotaViolation, [key]), [key: .some(value(1))])
        let round = [Observation.refused(process: 1, [key]), notified]
        let many = [opened()] + Array(repeating: round, count: 26).flatMap(\.self)
        #expect(complaint(NoticeChecker { 0 }, many) != nil)
        var now: Int64 = 0
        let slow = NoticeChecker {
            now += 5_000
            return now
        }
        #expect(complaint(slow, many) == nil)
    }

    // MARK: - Batches

    @Test func `parts of two transactions`() {
        let checker = BatchChecker(groups: [[key, other]])
        let whole = [key: value(1, batch: 9), other: value(2, batch: 9)]
        let mixed = [key: value(1, batch: 9), other: value(4, batch: 8)]
        #expect(complaint(checker, [.rested(process: 1, values: whole)]) == nil)
        #expect(complaint(checker, [.rested(process: 1, values: mixed)]) != nil)
        #expect(complaint(checker, [opened([key: value(1, batch: 9)])]) != nil)
    }

    // MARK: - Quota

    @Test func `a store that grew beyond its limit`() throws {
        var limits = StoreLimits()
        limits.storeBytesMax = 3
        let tooLarge = try commit([], [record(1, at: 1)], limits: limits)
        #expect(complaint(QuotaChecker(), [tooLarge]) != nil)
        let unchanged = try commit([record(1, at: 1)], [record(1, at: 1)], limits: limits)
        #expect(complaint(QuotaChecker(), [unchanged]) == nil)
        limits = StoreLimits()
        limits.keysMax = 0
        #expect(
            complaint(QuotaChecker(), [try commit([], [record(1, at: 1)], limits: limits)]) != nil)
    }

    // MARK: - Commits

    @Test func `an earlier write that replaces a later one`() throws {
        let later = record(1, at: 20)
        #expect(complaint(CommitChecker(), [try commit([later], [record(2, at: 10)])]) != nil)
        #expect(complaint(CommitChecker(), [try commit([later], [record(2, at: 30)])]) == nil)
        let greater = record(3, at: 20, by: 2)
        #expect(complaint(CommitChecker(), [try commit([greater], [later])]) != nil)
        #expect(complaint(CommitChecker(), [try commit([later], [greater])]) == nil)
    }

    @Test func `a counter has a limited number of parts, and its fold`() throws {
        func counts(_ runs: Int) throws -> [Record] {
            let names = (0..<runs).map { "c\($0)" } + ["c+", "c-+"]
            return try names.map { name in
                var record = record(1, at: 10)
                record.key = record.key.part(try #require(PartID(name)))
                record.content = .value(.array([.integer(1), .integer(1)]))
                return record
            }
        }
        #expect(try complaint(CommitChecker(), [commit([], counts(60))]) == nil)
        #expect(try complaint(CommitChecker(), [commit([], counts(61))]) != nil)
    }

    @Test func `a write of a refused transaction, a made-up one, and one from the future`() throws {
        let refused = TransactionResult.refused(Refusal(code: "quota-bytes", detail: ""))
        let written = record(1, at: 10)
        #expect(complaint(CommitChecker(), [try commit([], [written], result: refused)]) != nil)
        #expect(
            complaint(CommitChecker(), [try commit([], [written], pushed: [record(2, at: 10)])])
                != nil)
        #expect(complaint(CommitChecker(), [try commit([], [record(1, at: 70_000)])]) != nil)
    }

    @Test func `something that disappears`() throws {
        let lost = try commit([record(1, at: 10)], [], pushed: [record(2, at: 5)])
        #expect(complaint(CommitChecker(), [lost]) != nil)
    }

    // MARK: - Cursors

    @Test func `a revision left out, or given twice`() throws {
        let first = try commit([], [record(1, at: 1)])
        let third = try commit([], [record(2, at: 2)], revision: 3)
        #expect(complaint(CursorChecker(), [first, third]) != nil)
        let again = try commit([], [record(2, at: 2)])
        let restored = Observation.serverRestored([:])
        #expect(complaint(CursorChecker(), [first, restored, again]) != nil)
        let anew = try commit([], [record(2, at: 2)], epoch: 2)
        #expect(complaint(CursorChecker(), [first, restored, anew]) == nil)
    }

    @Test func `a cursor that was reached without what comes before it`() throws {
        let first = try commit([], [record(1, at: 1)])
        func received(_ values: [Key: PropertyListValue], own: Set<Key> = []) -> Observation {
            .received(
                process: 1, store, Position(epoch: 1, revision: 1), values: values, own: own)
        }
        #expect(complaint(CursorChecker(), [first, received([:])]) != nil)
        #expect(complaint(CursorChecker(), [first, received([key: value(1)])]) == nil)
        #expect(complaint(CursorChecker(), [first, received([:], own: [key])]) == nil)
    }

    @Test func `a primary that was replaced, and is read or written again`() throws {
        func commit(_ revision: Int64, epoch: UInt64 = 1) throws -> Observation {
            try self.commit([], [record(1, at: 1)], revision: revision, epoch: epoch)
        }
        func read(_ revision: Int64, epoch: UInt64 = 1) -> Observation {
            .read(store, Position(epoch: epoch, revision: revision))
        }
        let first = try [read(0, epoch: 0), commit(1), read(1)]
        #expect(complaint(PromotionChecker(), first) == nil)
        let promoted = try first + [commit(2, epoch: 2), read(2, epoch: 2)]
        #expect(complaint(PromotionChecker(), promoted) == nil)
        #expect(complaint(PromotionChecker(), promoted + [read(1)]) != nil)
        #expect(complaint(PromotionChecker(), promoted + [read(2)]) != nil)
        #expect(try complaint(PromotionChecker(), promoted + [commit(2)]) != nil)
        let lossy = Observation.serverRestored([:])
        #expect(try complaint(PromotionChecker(), first + [lossy, commit(1, epoch: 2)]) == nil)
    }

    @Test func `an epoch that comes back`() throws {
        let commits = try [1, 2, 1].enumerated().map { index, epoch in
            try commit(
                [], [record(index + 1, at: Int64(index))], revision: Int64(index + 1),
                epoch: UInt64(epoch))
        }
        #expect(complaint(CursorChecker(), Array(commits.prefix(2))) == nil)
        #expect(complaint(CursorChecker(), commits) != nil)
    }

    // MARK: - Answers

    @Test func `an answer before the commit, or that a standby lacks`() throws {
        let first = try commit([], [record(1, at: 1)])
        let answered = Observation.answered(store, Position(epoch: 1, revision: 1))
        #expect(complaint(AnswerChecker(), [answered, first]) != nil)
        #expect(complaint(AnswerChecker(), [first, answered]) == nil)
        let standby = Observation.serverRestored([:], keepsAnswers: true)
        #expect(complaint(AnswerChecker(), [first, answered, standby]) != nil)
        #expect(complaint(AnswerChecker(), [first, standby]) == nil)
        #expect(complaint(AnswerChecker(), [first, answered, .serverRestored([:])]) == nil)
    }

    // MARK: - Accounts

    @Test func `a write of one account in another one's store`() throws {
        let elsewhere = Observation.signedIn(device: 1, folder: "1", account: 2)
        let committed = try commit([], [record(1, at: 1)])
        #expect(complaint(AccountChecker(), [signedIn, wrote(1), committed]) == nil)
        #expect(complaint(AccountChecker(), [elsewhere, wrote(1), committed]) != nil)
    }

    // MARK: - Frequency

    @Test func `more pushes than allowed, and a storm of streams`() throws {
        let push = Observation.pushes(process: 1, Push([]))
        let allowance = Allowance(burst: 2, perSecond: 1)
        #expect(
            complaint(PushRateChecker(allowance: allowance) { 0 }, [opened(), push, push]) == nil)
        #expect(
            complaint(PushRateChecker(allowance: allowance) { 0 }, [opened(), push, push, push])
                != nil)
        let streams = Array(repeating: Observation.opensStream(process: 1), count: 26)
        #expect(complaint(PushRateChecker(allowance: allowance) { 0 }, [opened()] + streams) != nil)
    }

    @Test func `polls that do not become rarer, whatever they say has been saved`() {
        let start = Position(epoch: 1, revision: 1)
        let poll: [Observation] = [
            .tells(process: 1, store, start, values: [:], own: []), .pulls(process: 1),
            .read(store, start),
        ]
        func polls(_ count: Int) -> String? {
            let polls = Array(repeating: poll, count: count).flatMap(\.self)
            return complaint(PushRateChecker(allowance: Allowance()) { 0 }, [opened()] + polls)
        }
        #expect(polls(30) == nil)
        #expect(polls(31) != nil)
    }

    // MARK: - Round trips

    @Test func `a round trip that left something behind, or did not bring something`() throws {
        let asked = Observation.askedRoundTrip(process: 1, id: 1, waiting: [key])
        func finished(
            _ values: [Key: PropertyListValue], waiting: Set<Key> = []
        ) -> Observation {
            .finishedRoundTrip(process: 1, id: 1, values: values, waiting: waiting)
        }
        let start = [signedIn, opened(), wrote(1)]
        let left = finished([key: value(1)], waiting: [key])
        #expect(complaint(RoundTripChecker(), start + [asked, left]) != nil)
        let committed = try commit([], [record(1, at: 1)])
        #expect(
            complaint(RoundTripChecker(), start + [asked, committed, finished([key: value(1)])])
                == nil)
        let empty = Observation.askedRoundTrip(process: 1, id: 1, waiting: [])
        #expect(
            complaint(
                RoundTripChecker(), [signedIn, opened(), committed, empty, finished([:])]) != nil)
    }

    @Test func `a round trip that hides a refusal, but for one that was known before`() throws {
        let asked = Observation.askedRoundTrip(process: 1, id: 1, waiting: [key])
        let refused = try commit(
            [], [], pushed: [record(1, at: 1)],
            result: .refused(Refusal(code: "quota-bytes", detail: "")))
        let withdrawn = Observation.changed(process: 1, [key], .answer)
        let finished = Observation.finishedRoundTrip(process: 1, id: 1, values: [:], waiting: [])
        let start = [signedIn, opened(), wrote(1)]
        let later = start + [asked, refused, withdrawn, finished]
        #expect(complaint(RoundTripChecker(), later) != nil)
        let before = start + [refused, withdrawn, asked, finished]
        #expect(complaint(RoundTripChecker(), before) == nil)
    }

    // MARK: - Agreement

    @Test func `somebody who does not agree in the end`() {
        func process(
            _ values: [Key: PropertyListValue], onDisk: [Key: PropertyListValue]? = nil,
            waiting: Set<Key> = [], isConnected: Bool = true, diskFailure: String? = nil,
            wakes: Int = 0
        ) -> Settlement.Process {
            Settlement.Process(
                number: 1, disk: disk, account: 1, values: values, waiting: waiting,
                isConnected: isConnected, onDisk: onDisk ?? values, diskFailure: diskFailure,
                wakes: wakes)
        }
        let (server, same) = ([record(1, at: 1)], [key: value(1)])
        let checker = ConvergenceChecker()
        #expect(complaint(checker, [settled(server, process(same))]) == nil)
        #expect(complaint(checker, [settled(server, process([:]))]) != nil)
        #expect(complaint(checker, [settled(server, process(same, onDisk: [:]))]) != nil)
        #expect(complaint(checker, [settled(server, process(same, waiting: [key]))]) != nil)
        #expect(complaint(checker, [settled(server, process(same, isConnected: false))]) != nil)
        #expect(complaint(checker, [settled(server, process(same, diskFailure: "x"))]) != nil)
        #expect(complaint(checker, [settled(server, process(same, wakes: 400_000))]) != nil)
    }

    // MARK: - Survival

    private func survival(_ tolerance: Int64? = nil) -> SurvivalChecker {
        SurvivalChecker(timeTolerance: tolerance, keepsStamps: true)
    }

    @Test func `an acknowledged write that is gone`() {
        let start = [signedIn, opened(), wrote(1)]
        let acknowledged = start + [.synchronized(process: 1)]
        #expect(complaint(survival(), acknowledged + [settled([])]) != nil)
        #expect(complaint(survival(), acknowledged + [settled([record(1, at: 1)])]) == nil)
        // Nobody was promised anything.
        #expect(complaint(survival(), start + [.ended(process: 1), settled([])]) == nil)
        // It was refused, and the app was told.
        let withdrawn = Observation.withdrawn(disk: disk, [record(1, at: 1)])
        #expect(complaint(survival(), acknowledged + [withdrawn, settled([])]) == nil)
    }

    @Test func `an earlier write that is back`() {
        let start = [signedIn, opened(), wrote(1), wrote(2, over: 1)]
        let acknowledged = start + [.synchronized(process: 1)]
        #expect(complaint(survival(), acknowledged + [settled([record(1, at: 1)])]) != nil)
        #expect(complaint(survival(), acknowledged + [settled([record(2, at: 2)])]) == nil)
        let deleted = [signedIn, opened(), wrote(1), wrote(2, over: 1, isDeletion: true)]
        #expect(
            complaint(
                survival(), deleted + [.synchronized(process: 1), settled([record(1, at: 1)])])
                != nil)
        #expect(complaint(survival(), deleted + [.synchronized(process: 1), settled([])]) == nil)
    }

    @Test(arguments: [false, true])
    func `an earlier write that is back, unless the network brought it late`(
        isDeletion: Bool
    ) throws {
        let sent = Record(
            key: key, content: isDeletion ? .deleted : .value(value(1)),
            stamp: record(1, at: 9_000).stamp)
        func saves(_ record: Record) -> Observation {
            .saves(
                process: 1,
                [StoredEntry(key: key, pending: PendingWrite(record: record, transaction: 1))], nil)
        }
        let start = [
            signedIn, opened(), wrote(1, isDeletion: isDeletion),
            .pushes(process: 1, Push([try Transaction([sent])])), wrote(2, over: 1),
        ]
        let taken = try commit([], [sent])
        let end = [Observation.synchronized(process: 1), settled([sent])]
        // The server's clock was set back, and what replaced it is stamped anew.
        let anew = saves(record(2, at: 500))
        #expect(complaint(survival(), start + [anew, taken] + end) == nil)
        #expect(complaint(survival(), start + [taken, anew] + end) != nil)
        #expect(complaint(survival(), start + [saves(record(2, at: 9_001)), taken] + end) != nil)
    }

    @Test func `a write of long ago that won over a later one`() {
        let start = [signedIn, opened(), wrote(1, time: 0), wrote(2, time: 50_000)]
        let acknowledged = start + [.synchronized(process: 1)]
        #expect(complaint(survival(10_000), acknowledged + [settled([record(1, at: 1)])]) != nil)
        #expect(complaint(survival(60_000), acknowledged + [settled([record(1, at: 1)])]) == nil)
    }

    @Test func `a write of long ago, as far as the clocks of the two devices allow to say`() {
        func complains(_ clocks: Observation...) -> Bool {
            let writes = [signedIn, opened(), wrote(1, time: 0), wrote(2, time: 50_000)]
            let end = [Observation.synchronized(process: 1), settled([record(1, at: 1)])]
            return complaint(survival(10_000), clocks + writes + end) != nil
        }
        func clock(_ error: Int64, boot: UInt64, drift: Int64 = 0) -> Observation {
            .clock(device: 1, error: error, drift: drift, boot: boot)
        }
        // Hours wrong, and always the same, or set within one boot.
        #expect(complains(clock(7_200_000, boot: 1), clock(7_200_000, boot: 2)))
        #expect(complains(clock(0, boot: 1), clock(7_200_000, boot: 1)))
        #expect(complains(clock(0, boot: 1, drift: 200)))
        #expect(complains(.serverClock(error: 7_200_000)))
        #expect(!complains(clock(0, boot: 1), clock(7_200_000, boot: 2)))
        #expect(complains(.keptBack(device: 1, milliseconds: 20_000)))
        #expect(!complains(.keptBack(device: 1, milliseconds: 120_000)))
        #expect(!complains(.paused(device: 1, milliseconds: 60_000)))
        #expect(!complains(.serverClock(error: 0), .serverClock(error: 60_000)))
    }
}
