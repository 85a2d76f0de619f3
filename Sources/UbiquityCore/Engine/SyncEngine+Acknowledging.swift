// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    mutating func pushAnswered(_ number: Int, _ sealed: PushAnswer, at now: ClockReading) {
        guard let inFlight = pushInFlight, inFlight.number == number else { return }
        let push = inFlight.push
        let answer: PushAnswer
        do throws(LinkFailure) { answer = try opened(sealed, at: now) } catch {
            return pushFailed(number, error, at: now)
        }
        guard answer.fits(push) else {
            let failure = LinkFailure(.refused, "the server's answer does not match the push")
            return pushFailed(number, failure, at: now)
        }
        if let failure = refusal(of: answer) { return pushFailed(number, failure, at: now) }
        outbox.state = .ready
        receipts.told(push.saved)
        if let tooLarge = outbox.tooLarge, push.bytes >= tooLarge.bytes { outbox.tooLarge = nil }
        outbox.backoff.succeed()
        // What had refused pushes does so no more. With polls it says why there is no stream.
        if meta.link.state == .connected, meta.link.lastError != nil, outbox.tooLarge == nil {
            meta.link.lastError = nil
            unsaved.meta = true
        }
        outbox.bytesMax += min(outbox.bytesMax / 4, Int.max - outbox.bytesMax)
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
                    guard let refusal = take(result, of: write, at: answer.cursor, now)
                    else { continue }
                    refused[write.key] = refusal
                    if withdraw(write, refusal) { compacted.insert(write.key) }
                }
            case .refused(let refusal):
                let isCompacted = refusal.isOlderThanCompacted
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
            Set(push.transactions.flatMap { $0.writes.map { $0.key } }), refused: refused,
            of: number)
        let views = entries.refreshViews().subtracting(withdrawn.map { $0.whole })
        post(Notice(.quotaViolation, withdrawn))
        post(Notice(.serverChange, views.union(compacted.filter { !entries.hasParts($0) })))
        if outbox.passedCursors.contains(answer.cursor) {
            post(Notice(.serverChange, finishAcknowledged { $0.cursor == answer.cursor }))
        }
        noteLag(at: now.uptime)
        // A stream that went live since may come from a server restored after the answer.
        if isLive, inFlight.streams < counts.streams { unacknowledge(before: .max) }
    }

    /// - Parameter cursor: The server's cursor at the answer.
    /// - Returns: The reason the app's write was refused; nil if it was not.
    private mutating func take(
        _ result: WriteResult, of write: Record, at cursor: Cursor, _ now: ClockReading
    ) -> Refusal? {
        switch result {
        case .applied: acknowledge(write, held: write, at: cursor)
        case .superseded(let later):
            // An older one loses to what is agreed.
            if let reason = objection(to: later, over: nil, at: now) {
                setAside(later, reason, at: now)
                return reason == .ahead ? .ahead : .unopened
            }
            acknowledge(write, held: later, at: cursor)
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
        outbox.acknowledged[write.key] = AcknowledgedWrite(
            write: write, transaction: pending.transaction, held: held, cursor: cursor,
            fetch: counts.fetches)
    }

    /// The stream has reached a cursor.
    /// - Returns: The keys whose value changed for the app.
    mutating func pass(_ cursor: Cursor) -> Set<Key> {
        if pushInFlight == nil, link.pull == nil { outbox.passedCursors = [] }
        outbox.passedCursors.insert(cursor)
        if let lag = link.live?.lag, lag.cursor == cursor {
            link.live?.lag = nil
            counts.fetchesFinished = max(counts.fetchesFinished, lag.fetch)
        }
        defer { noteLag() }
        return finishAcknowledged { $0.cursor == cursor }
    }

    /// Expects the stream at the cursor of an answer for a deletion, which it may not bring: the
    /// deletion may be older than the stream, which began with the whole store. It may never come to
    /// that cursor, because an event may bring several pushes. Then a new stream is opened, and the
    /// write is sent again.
    /// - Parameter uptime: When the stream began to lag; nil means with its last heartbeat.
    private mutating func noteLag(at uptime: Int64? = nil) {
        guard let stream = link.live, stream.lag == nil else { return }
        let awaited = outbox.acknowledged.values.filter { $0.held.content == .deleted }
        guard let next = awaited.min(by: { $0.write.key < $1.write.key }) else { return }
        link.live?.lag = LiveStream.Lag(
            fetch: 0, cursor: next.cursor, noticedAt: uptime ?? stream.heartbeatAt)
    }

    /// Replaces acknowledged writes by the server's records where everything committed before the
    /// answer is here. Usually the stream has already brought them, but it does not bring a
    /// deletion if it began with the whole store.
    /// - Returns: The keys whose value changed for the app.
    private mutating func finishAcknowledged(where hasAll: (AcknowledgedWrite) -> Bool) -> Set<Key>
    {
        var changed: Set<Key> = []
        for (key, acknowledged) in outbox.acknowledged where hasAll(acknowledged) {
            outbox.acknowledged[key] = nil
            // What it lost to may be older than what was set aside.
            if acknowledged.held == acknowledged.write { noteTaken(key) }
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
        for (key, acknowledged) in outbox.acknowledged where acknowledged.fetch < fetch {
            outbox.acknowledged[key] = nil
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
        let (acknowledged, generation) = (outbox.acknowledged[write.key], generation)
        entries.update(write.key) { entry in
            entry.dropPending()
            // The previous write is on the server, and the stream has not brought it.
            guard let acknowledged, acknowledged.write != write else { return }
            entry.pending = PendingWrite(
                record: acknowledged.write, transaction: acknowledged.transaction,
                isUnkept: entry.wasUnkept, generation: generation)
            entry.isAcknowledged = true
            entry.dropPendingIfBeaten()
        }
        unsaved.refused.append(RefusedWrite(record: write, refusal: refusal))
        return true
    }
}

extension SyncEngine {
    /// The writes that wait for the server, by the keys of their records.
    package var waitingWrites: [Key: PendingWrite] {
        waiting.reduce(into: [:]) { $0[$1] = entries[$1]?.pending }
    }

    /// The writes on which device and server do not agree yet: those that wait, and those that the server
    /// has acknowledged and not brought. A process that starts takes both for waiting.
    package var unconfirmedWrites: [Key: PendingWrite] {
        waiting.union(outbox.acknowledged.keys).reduce(into: [:]) { $0[$1] = entries[$1]?.pending }
    }

    /// Whether none of these writes waits any more: device and server agree on it, or on a later
    /// one of the same key. Looking for new writes would not do: an app that keeps writing a key
    /// nearly always has one waiting.
    package func hasConfirmed(_ writes: [Key: PendingWrite], at now: ClockReading) -> Bool {
        writes.allSatisfy { key, write in
            guard let entry = entries[key], entry.waits else { return true }
            guard entry.pending?.transaction != write.transaction, let confirmed = entry.confirmed
            else { return false }
            return clock.time(of: write, at: now) <= confirmed.stamp.timestamp
        }
    }
}
