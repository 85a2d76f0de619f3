// SPDX-License-Identifier: Apache-2.0

/// A push that was sent and is not answered yet.
struct PushInFlight: Hashable, Sendable {
    /// An answer to another number is none to this one.
    var number: Int
    var push: Push
}

/// A write that the server has answered, and of which the stream has not brought what the server
/// holds now: the write itself, or a later one.
///
/// It is not taken before: a later write may be a part of a transaction, which the stream brings as
/// one; and a server that is restored from a copy of just before the answer would never be told of a
/// write that this device took for agreed, for it resumes from the stream's cursor, which is older.
struct SettledWrite: Hashable, Sendable {
    var write: Record
    var held: Record
    /// The server's when it answered: who has come there has all of that.
    var cursor: Cursor
    /// The last stream that was opened before the answer; a later one begins after it.
    var stream: Int
}

extension SyncEngine {
    /// What a write takes of a push besides its payload, generously.
    private static let writeOverheadBytes = 128

    /// What can be sent now: whole transactions that are on disk under their final stamps, the
    /// oldest first, as many as the server takes at once.
    mutating func nextPush(at now: ClockReading) -> PushInFlight? {
        guard isLive, pushInFlight == nil, !waiting.isEmpty,
            now.uptime >= pushRetry?.at ?? .min
        else { return nil }
        // Its time has come: were it kept while nothing can be sent, time would seem to help.
        pushRetry = nil
        let transactions = sendable()
        guard !transactions.isEmpty else { return nil }
        if let milliseconds = bucket.take(now: now.uptime) {
            pushRetry = Retry(at: now.uptime + milliseconds, notBefore: now.uptime + milliseconds)
            return nil
        }
        pushesSent += 1
        passedCursors = meta.cursor.map { [$0] } ?? []
        pushInFlight = PushInFlight(number: pushesSent, push: Push(transactions))
        return pushInFlight
    }

    private func sendable() -> [Transaction] {
        var writes: [UInt64: [Record]] = [:]
        var had: [UInt64: [Key: Cursor]] = [:]
        var held: Set<UInt64> = []
        for key in waiting {
            guard let pending = entries[key]?.pending else { continue }
            writes[pending.transaction, default: []].append(pending.record)
            if let cursor = pending.had { had[pending.transaction, default: [:]][key] = cursor }
            if pending.provisional != nil || !entries.isSaved(key) {
                held.insert(pending.transaction)
            }
        }
        var result: [Transaction] = []
        var bytes = 0
        let ready = writes.filter { !held.contains($0.key) }
        for (number, writes) in ready.sorted(by: { Self.isOlder($0.value, $1.value) }) {
            bytes += writes.reduce(0) { $0 + Self.bytes(of: $1) }
            if !result.isEmpty, bytes > meta.limits.pushBytesMax { break }
            // Keys are unique here: each comes from another entry.
            let sorted = writes.sorted { $0.key < $1.key }
            if let transaction = try? Transaction(sorted, had: had[number] ?? [:]) {
                result.append(transaction)
            }
        }
        return result
    }

    private static func isOlder(_ a: [Record], _ b: [Record]) -> Bool {
        func oldest(_ records: [Record]) -> (Stamp, Key)? {
            records.map { ($0.stamp, $0.key) }.min { $0 < $1 }
        }
        guard let a = oldest(a), let b = oldest(b) else { return false }
        return a < b
    }

    private static func bytes(of record: Record) -> Int {
        record.key.bytesCount + (record.content.value?.payloadBytes ?? 0)
            + writeOverheadBytes
    }

    mutating func pushAnswered(_ number: Int, _ answer: PushAnswer, at now: ClockReading) {
        guard let push = pushInFlight?.push, pushInFlight?.number == number else { return }
        guard answer.results.count == push.transactions.count else {
            let failure = LinkFailure(.refused, "the server's answer does not fit the push")
            return pushFailed(number, failure, at: now)
        }
        pushInFlight = nil
        pushBackoff.succeed()
        meta.link.lastSync = clock.milliseconds(at: now)
        var withdrawn: Set<Key> = []
        var forgotten: Set<Key> = []
        for (transaction, result) in zip(push.transactions, answer.results) {
            switch result {
            case .committed(let results):
                for (write, result) in zip(transaction.writes, results)
                where !take(result, of: write, at: answer.cursor) {
                    forgotten.insert(write.key)
                }
            case .refused(let refusal):
                let keys = transaction.writes.filter { withdraw($0, refusal) }.map(\.key)
                if refusal.code == Refusal.olderThanForgotten.code {
                    forgotten.formUnion(keys)
                } else {
                    withdrawn.formUnion(keys)
                }
            }
        }
        noteAnswered(Set(push.transactions.flatMap { $0.writes.map(\.key) }), of: number)
        let views = entries.refreshViews().subtracting(withdrawn.map(\.whole))
        post(Notice(.quotaViolation, withdrawn))
        post(Notice(.serverChange, views.union(forgotten.filter { !entries.hasParts($0) })))
        if passedCursors.contains(answer.cursor) {
            finishSettled { $0.cursor == answer.cursor }
        }
    }

    /// - Parameter cursor: The server's when it answered.
    /// - Returns: False if the app's write did not come to pass.
    private mutating func take(
        _ result: WriteResult, of write: Record, at cursor: Cursor
    ) -> Bool {
        switch result {
        case .applied: settle(write, held: write, at: cursor)
        case .superseded(let later): settle(write, held: later, at: cursor)
        case .olderThanForgotten where write.content == .deleted:
            // There is nothing to delete.
            if entries[write.key]?.pending?.record == write {
                entries.update(write.key) { $0.dropPending() }
            }
        case .olderThanForgotten: return !withdraw(write, .olderThanForgotten)
        }
        return true
    }

    private mutating func settle(_ write: Record, held: Record, at cursor: Cursor) {
        guard entries[write.key]?.pending?.record == write else { return }
        entries.update(write.key, saves: false) { $0.isSettled = true }
        settledWrites[write.key] = SettledWrite(
            write: write, held: held, cursor: cursor, stream: streamsOpened)
    }

    /// The stream has come to a cursor.
    mutating func pass(_ cursor: Cursor) {
        if pushInFlight != nil { passedCursors.insert(cursor) }
        finishSettled { $0.cursor == cursor }
    }

    /// Takes what the server holds in place of settled writes, where all that was committed before
    /// the answer is here. Mostly the stream has brought it; not a deletion, if it began with the
    /// whole store.
    private mutating func finishSettled(where hasAll: (SettledWrite) -> Bool) {
        var changed: Set<Key> = []
        for (key, settled) in settledWrites where hasAll(settled) {
            settledWrites[key] = nil
            guard let entry = entries[key], entry.isSettled, entry.pending?.record == settled.write
            else { continue }
            let isChanged = entries.update(key) { entry in
                entry.dropPending()
                entry.merge(settled.held)
            }
            if isChanged { changed.insert(key) }
        }
        post(Notice(.serverChange, changed.union(entries.refreshViews())))
    }

    /// What was answered before a stream was opened, and the stream did not bring, the server does
    /// not have any more, or it was a deletion: it is sent again.
    mutating func unsettle(before stream: Int) {
        for (key, settled) in settledWrites where settled.stream < stream {
            settledWrites[key] = nil
            guard entries[key]?.isSettled ?? false else { continue }
            entries.update(key, saves: false) { $0.isSettled = false }
        }
    }

    /// Puts the last agreed value back, and keeps the refused one for the app.
    /// - Returns: Whether the write was still there to be withdrawn.
    private mutating func withdraw(_ write: Record, _ refusal: Refusal) -> Bool {
        guard entries[write.key]?.pending?.record == write else { return false }
        let agreed = settledWrites[write.key]?.held
        entries.update(write.key) { entry in
            entry.dropPending()
            if let agreed { entry.merge(agreed) }
        }
        refusedUnsaved.append(RefusedWrite(record: write, refusal: refusal))
        return true
    }

    mutating func pushFailed(_ number: Int, _ failure: LinkFailure, at now: ClockReading) {
        guard pushInFlight?.number == number else { return }
        pushInFlight = nil
        meta.link.lastError = failure.detail
        switch failure.kind {
        case .unauthorized:
            closeLink()
            waitAfter(failure, at: now)
        case .clockAhead where hasUnknownPush: closeLink()
        case .clockAhead(let serverMilliseconds):
            restamp(aheadOf: serverMilliseconds, at: now)
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        case .busy(let milliseconds): retryPush(after: milliseconds, at: now, isOrdered: true)
        case .refused: retryPush(after: Self.refusedRetryMilliseconds, at: now)
        case .unreachable, .cursorGone:
            hasUnknownPush = true
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        }
        failRequests(failure)
    }

    private mutating func retryPush(
        after milliseconds: Int64, at now: ClockReading, isOrdered: Bool = false
    ) {
        let at = now.uptime + milliseconds
        pushRetry = Retry(at: at, notBefore: isOrdered ? at : now.uptime)
    }

    /// Stamps anew, as made now, what the server finds too far in its future. It was never taken.
    private mutating func restamp(aheadOf serverMilliseconds: Int64, at now: ClockReading) {
        post(Notice(.serverChange, measureClock(serverMilliseconds, at: now)))
        let latest = serverMilliseconds + PushAdmission.clockAheadMax
        let keys = waiting.filter {
            entries[$0].map { $0.pending!.record.stamp.timestamp.milliseconds > latest } ?? false
        }
        clock = DeviceClock(correction: clock.correction)
        for (key, entry) in entries.all {
            observe(entry.confirmed, keys.contains(key) ? nil : entry.pending, at: now)
        }
        // What is one transaction gets one stamp, in the order in which it was written.
        var stamps: [HybridTimestamp: HybridTimestamp] = [:]
        let old = Set(keys.compactMap { entries[$0]?.pending?.record.stamp.timestamp })
        for timestamp in old.sorted() { stamps[timestamp] = clock.issue(at: now).timestamp }
        post(Notice(.serverChange, stamp(keys, by: stamps)))
    }
}
