// SPDX-License-Identifier: Apache-2.0

/// A push that was sent and is not answered yet.
struct PushInFlight: Hashable, Sendable {
    /// An answer with another number is ignored.
    var number: Int
    var push: Push
    var sentAt: ClockReading
    /// The last stream opened before the push.
    var streamsOpened: Int
}

/// A transaction that was too large even alone.
struct TooLarge: Hashable, Sendable {
    var bytes: Int
    /// When one of this size is retried; nil means when nothing else waits.
    var retry: Retry?
}

/// A write that the server has acknowledged, while the stream has not yet brought what the server
/// holds now: this write or a later one.
///
/// It is not confirmed earlier for two reasons. A later write may be part of a transaction, which
/// the stream brings as one. And a server restored from a copy just before the answer would never
/// be told of a write that this device considers confirmed, because it resumes from the stream's
/// older cursor.
struct AcknowledgedWrite: Hashable, Sendable {
    var write: Record
    var transaction: UInt64
    var held: Record
    /// The server's cursor at the answer. A device that reaches it has all of this.
    var cursor: Cursor
    /// The last stream or poll begun before the answer. A later one includes the write.
    var fetch: Int
}

extension SyncEngine {
    /// The minimum size of a push, in bytes.
    static let pushBytesMin = 1_024
    /// The pause before a transaction that was too large alone is retried, in milliseconds.
    static let tooLargeRetryMilliseconds: Int64 = 3_600_000

    /// The next push: whole transactions that are on disk with their final stamps, oldest first, as
    /// many as the server accepts at once.
    mutating func nextPush(at now: ClockReading) -> PushInFlight? {
        guard isReached, pushInFlight == nil, !waiting.isEmpty,
            now.uptime >= pushRetry?.at ?? .min
        else { return nil }
        // Its time has come. If it stayed set while nothing can be sent, `nextWake` would lie in
        // the past.
        pushRetry = nil
        if let retry = tooLarge?.retry, retry.at <= now.uptime { tooLarge?.retry = nil }
        let transactions = sendable()
        guard !transactions.isEmpty else { return nil }
        if let milliseconds = bucket.take(now: now.uptime) {
            pushRetry = Retry(at: now.uptime + milliseconds, notBefore: now.uptime + milliseconds)
            return nil
        }
        pushesSent += 1
        let push = Push(transactions)
        bucket.charge(bytes: push.bytes, now: now.uptime)
        pushInFlight = PushInFlight(
            number: pushesSent, push: push, sentAt: now, streamsOpened: streamsOpened)
        return pushInFlight
    }

    /// The uptime of the next attempt to push; nil if nothing waits for one.
    var pushAt: Int64? {
        guard isReached, pushInFlight == nil, !waiting.isEmpty else { return nil }
        return pushRetry?.at ?? tooLarge?.retry?.at
    }

    mutating func pushAnswered(_ number: Int, _ answer: PushAnswer, at now: ClockReading) {
        guard let inFlight = pushInFlight, inFlight.number == number else { return }
        let push = inFlight.push
        guard answer.fits(push) else {
            let failure = LinkFailure(.refused, "the server's answer does not fit the push")
            return pushFailed(number, failure, at: now)
        }
        if let failure = refusal(of: answer) { return pushFailed(number, failure, at: now) }
        pushInFlight = nil
        if let tooLarge, push.bytes >= tooLarge.bytes { self.tooLarge = nil }
        pushBackoff.succeed()
        pushBytesMax += min(pushBytesMax / 4, Int.max - pushBytesMax)
        hurryPolling(at: now)
        meta.link.lastSync = clock.milliseconds(at: now)
        let measured = measureClock(answer.serverMilliseconds, sentAt: inFlight.sentAt, at: now)
        post(Notice(.serverChange, measured))
        var withdrawn: Set<Key> = []
        var compacted: Set<Key> = []
        var refused: [Key: Refusal] = [:]
        for (transaction, result) in zip(push.transactions, answer.results) {
            switch result {
            case .committed(let results):
                for (write, result) in zip(transaction.writes, results) {
                    guard let refusal = take(result, of: write, at: answer.cursor) else { continue }
                    refused[write.key] = refusal
                    if withdraw(write, refusal) { compacted.insert(write.key) }
                }
            case .refused(let refusal):
                let isCompacted = refusal.code == Refusal.olderThanCompacted.code
                for write in transaction.writes {
                    refused[write.key] = refusal
                    if !isCompacted { neverHad(write, over: transaction.had[write.key]) }
                    guard withdraw(write, refusal) else { continue }
                    if isCompacted {
                        compacted.insert(write.key)
                    } else {
                        withdrawn.insert(write.key)
                    }
                }
            }
        }
        noteAnswered(
            Set(push.transactions.flatMap { $0.writes.map(\.key) }), refused: refused, of: number)
        let views = entries.refreshViews().subtracting(withdrawn.map(\.whole))
        post(Notice(.quotaViolation, withdrawn))
        post(Notice(.serverChange, views.union(compacted.filter { !entries.hasParts($0) })))
        if passedCursors.contains(answer.cursor) {
            post(Notice(.serverChange, finishAcknowledged { $0.cursor == answer.cursor }))
        }
        // A stream that went live since may come from a server restored after the answer.
        if isLive, inFlight.streamsOpened < streamsOpened { unacknowledge(before: .max) }
    }

    /// - Parameter cursor: The server's cursor at the answer.
    /// - Returns: The reason the app's write was refused; nil if it was not.
    private mutating func take(
        _ result: WriteResult, of write: Record, at cursor: Cursor
    ) -> Refusal? {
        switch result {
        case .applied: acknowledge(write, held: write, at: cursor)
        case .superseded(let later): acknowledge(write, held: later, at: cursor)
        case .olderThanCompacted where write.content == .deleted:
            // The server has nothing to delete; this device has, until the stream brings the
            // change.
            acknowledge(write, held: write, at: cursor)
        case .olderThanCompacted: return .olderThanCompacted
        }
        return nil
    }

    private mutating func acknowledge(_ write: Record, held: Record, at cursor: Cursor) {
        guard let pending = entries[write.key]?.pending else { return }
        if pending.record == write {
            entries.update(write.key, saves: false) { $0.isAcknowledged = true }
        }
        acknowledgedWrites[write.key] = AcknowledgedWrite(
            write: write, transaction: pending.transaction, held: held, cursor: cursor,
            fetch: fetchesStarted)
    }

    /// The stream has reached a cursor.
    /// - Returns: The keys of which the app sees a different value now.
    mutating func pass(_ cursor: Cursor) -> Set<Key> {
        if pushInFlight == nil, pullInFlight == nil { passedCursors = [] }
        passedCursors.insert(cursor)
        if let lag = streamLag, lag.cursor == cursor {
            streamLag = nil
            fetchesFinished = max(fetchesFinished, lag.fetch)
        }
        return finishAcknowledged { $0.cursor == cursor }
    }

    /// Replaces acknowledged writes by the server's records where everything committed before the
    /// answer is here. Usually the stream has already brought them, but it does not bring a
    /// deletion if it began with the whole store.
    /// - Returns: The keys of which the app sees a different value now.
    private mutating func finishAcknowledged(where hasAll: (AcknowledgedWrite) -> Bool) -> Set<Key>
    {
        var changed: Set<Key> = []
        for (key, acknowledged) in acknowledgedWrites where hasAll(acknowledged) {
            acknowledgedWrites[key] = nil
            guard let entry = entries[key], entry.isAcknowledged,
                entry.pending?.record == acknowledged.write
            else { continue }
            let isChanged = entries.update(key) { entry in
                entry.dropPending()
                entry.merge(acknowledged.held)
            }
            if isChanged { changed.insert(key) }
        }
        return changed.union(entries.refreshViews())
    }

    /// Sends a write again if it was acknowledged before a stream or poll began that did not bring
    /// it: the server no longer has it, or it was a deletion. The same goes for writes acknowledged
    /// while a stream was being opened, because it may begin beyond the answer's cursor and never
    /// reach it.
    mutating func unacknowledge(before fetch: Int) {
        for (key, acknowledged) in acknowledgedWrites where acknowledged.fetch < fetch {
            acknowledgedWrites[key] = nil
            guard entries[key]?.isAcknowledged ?? false else { continue }
            entries.update(key, saves: false) { $0.isAcknowledged = false }
            awaitAgain(key)
        }
    }

    /// The server never had the refused write, so what replaced that write replaced nothing there.
    private mutating func neverHad(_ write: Record, over had: Stamp?) {
        guard let pending = entries[write.key]?.pending, pending.record != write,
            pending.had == write.stamp.withoutDigest
        else { return }
        entries.update(write.key) { $0.pending?.had = had }
    }

    /// Restores the last confirmed value, and keeps the refused write for the app.
    /// - Returns: Whether the write was still there to withdraw.
    private mutating func withdraw(_ write: Record, _ refusal: Refusal) -> Bool {
        guard entries[write.key]?.pending?.record == write else { return false }
        let acknowledged = acknowledgedWrites[write.key]
        entries.update(write.key) { entry in
            entry.dropPending()
            // The previous write is on the server, and the stream has not brought it.
            guard let acknowledged, acknowledged.write != write else { return }
            entry.pending = PendingWrite(
                record: acknowledged.write, transaction: acknowledged.transaction)
            entry.isAcknowledged = true
            entry.dropPendingIfBeaten()
        }
        refusedUnsaved.append(RefusedWrite(record: write, refusal: refusal))
        return true
    }

    mutating func pushFailed(_ number: Int, _ failure: LinkFailure, at now: ClockReading) {
        guard let inFlight = pushInFlight, inFlight.number == number else { return }
        pushInFlight = nil
        var failure = failure
        switch failure.kind {
        case .unauthorized:
            closeLink()
            waitAfter(failure, at: now)
        case .clockAhead where unknownPush != nil: closeLink()
        case .clockAhead(let serverMilliseconds):
            restamp(aheadOf: serverMilliseconds, sentAt: inFlight.sentAt, at: now)
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        case .busy(let milliseconds), .tooManyStreams(let milliseconds):
            retryPush(after: milliseconds, at: now, isOrdered: true)
        case .refused: retryPush(after: Self.refusedRetryMilliseconds, at: now)
        case .tooLarge where inFlight.push.transactions.count > 1:
            shrink(after: inFlight.push)
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        case .tooLarge: failure.detail = hold(inFlight.push, at: now)
        case .timedOut:
            shrink(after: inFlight.push)
            unknownPush = fetchesStarted
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        case .unreachable, .cursorGone:
            unknownPush = fetchesStarted
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        }
        if meta.link.lastError != failure.detail {
            meta.link.lastError = failure.detail
            isMetaUnsaved = true
        }
        failRequests(failure)
    }

    private mutating func shrink(after push: Push) {
        pushBytesMax = max(Self.pushBytesMin, min(pushBytesMax, push.bytes) / 2)
    }

    /// Holds back a push that was too large. A transaction is never split: one that is too large
    /// alone lets others pass, and is retried after a long time.
    /// - Returns: A description of the problem.
    private mutating func hold(_ push: Push, at now: ClockReading) -> String {
        let bytes = push.bytes
        tooLarge = TooLarge(
            bytes: min(bytes, tooLarge?.bytes ?? .max),
            retry: Retry(
                at: now.uptime + Self.tooLargeRetryMilliseconds,
                notBefore: now.uptime + Self.refusedRetryMilliseconds))
        let key = push.transactions.first?.writes.first?.key.string ?? ""
        return
            "what was written with \"\(key)\", \(bytes) bytes, is more than the server, or a proxy "
            + "before it, takes at once"
    }

    private mutating func retryPush(
        after milliseconds: Int64, at now: ClockReading, isOrdered: Bool = false
    ) {
        let at = now.uptime + milliseconds
        pushRetry = Retry(at: at, notBefore: isOrdered ? at : now.uptime)
    }

    /// Gives new stamps to writes that the server refused as too far in its future. It never
    /// accepted them.
    private mutating func restamp(
        aheadOf serverMilliseconds: Int64, sentAt: ClockReading, at now: ClockReading
    ) {
        let measured = measureClock(serverMilliseconds, sentAt: sentAt, at: now)
        post(Notice(.serverChange, measured))
        let latest = serverMilliseconds + PushAdmission.clockAheadMax
        let keys = waiting.filter {
            entries[$0].map { $0.pending!.record.stamp.timestamp.milliseconds > latest } ?? false
        }
        clock = DeviceClock(correction: clock.correction)
        for (key, entry) in entries.all {
            observe(entry.confirmed, keys.contains(key) ? nil : entry.pending, at: now)
        }
        // Including records that the stream has not brought and whose author has written again
        // meanwhile.
        for acknowledged in acknowledgedWrites.values {
            clock.observe(acknowledged.held.stamp.timestamp)
        }
        // A transaction gets one stamp, in the order in which it was written.
        var stamps: [Stamp: HybridTimestamp] = [:]
        let old = Set(keys.compactMap { entries[$0]?.pending?.record.stamp })
        for stamp in old.sorted() { stamps[stamp] = clock.issue(at: now).timestamp }
        post(Notice(.serverChange, stamp(keys, by: stamps)))
    }
}
