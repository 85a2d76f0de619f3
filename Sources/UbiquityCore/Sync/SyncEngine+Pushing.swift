// SPDX-License-Identifier: Apache-2.0

/// A push that was sent and is not answered yet.
struct PushInFlight: Hashable, Sendable {
    /// An answer to another number is none to this one.
    var number: Int
    var push: Push
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
        let transactions = sendable()
        guard !transactions.isEmpty else { return nil }
        if let milliseconds = bucket.take(now: now.uptime) {
            pushRetry = Retry(at: now.uptime + milliseconds, notBefore: now.uptime + milliseconds)
            return nil
        }
        pushRetry = nil
        pushesSent += 1
        pushInFlight = PushInFlight(number: pushesSent, push: Push(transactions))
        return pushInFlight
    }

    private func sendable() -> [Transaction] {
        var writes: [UInt64: [Record]] = [:]
        var held: Set<UInt64> = []
        for key in waiting {
            guard let pending = entries[key]?.pending else { continue }
            writes[pending.transaction, default: []].append(pending.record)
            if pending.provisional != nil || !entries.isSaved(key) {
                held.insert(pending.transaction)
            }
        }
        var result: [Transaction] = []
        var bytes = 0
        for writes in writes.filter({ !held.contains($0.key) }).values.sorted(by: Self.isOlder) {
            bytes += writes.reduce(0) { $0 + Self.bytes(of: $1) }
            if !result.isEmpty, bytes > meta.limits.pushBytesMax { break }
            // Keys are unique here: each comes from another entry.
            if let transaction = try? Transaction(writes.sorted { $0.key < $1.key }) {
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
        record.key.string.utf8.count + (record.content.value?.payloadBytes ?? 0)
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
                where !take(result, of: write) {
                    forgotten.insert(write.key)
                }
            case .refused(let refusal):
                for write in transaction.writes where withdraw(write, refusal) {
                    withdrawn.insert(write.key)
                }
            }
        }
        let answered = push.transactions.flatMap { $0.writes.map(\.key) }
        for index in requests.indices { requests[index].waiting.subtract(answered) }
        post(Notice(.quotaViolation, withdrawn))
        post(Notice(.serverChange, forgotten))
    }

    /// - Returns: False if the app's write did not come to pass.
    private mutating func take(_ result: WriteResult, of write: Record) -> Bool {
        switch result {
        case .applied:
            entries.update(write.key) { $0.merge(write) }
        case .superseded:
            // The later write is not taken from here: it may be a part of a transaction, and the
            // stream brings all of that at once.
            if entries[write.key]?.pending?.record == write {
                entries.update(write.key, saves: false) { $0.isSettled = true }
            }
        case .olderThanForgotten:
            let refusal = Refusal(
                code: "older-than-forgotten",
                detail: "the key was deleted after this write was made, or may have been")
            return !withdraw(write, refusal)
        }
        return true
    }

    /// Puts the last agreed value back, and keeps the refused one for the app.
    /// - Returns: Whether the write was still there to be withdrawn.
    private mutating func withdraw(_ write: Record, _ refusal: Refusal) -> Bool {
        guard entries[write.key]?.pending?.record == write else { return false }
        entries.update(write.key) { $0.dropPending() }
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
        case .clockAhead(let serverMilliseconds):
            restamp(aheadOf: serverMilliseconds, at: now)
            retryPush(after: pushBackoff.fail(using: &random), at: now)
        case .busy(let milliseconds): retryPush(after: milliseconds, at: now, isOrdered: true)
        case .refused: retryPush(after: Self.refusedRetryMilliseconds, at: now)
        case .unreachable, .cursorGone:
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
        measureClock(serverMilliseconds, at: now)
        let latest = serverMilliseconds + PushAdmission.clockAheadMax
        let keys = waiting.filter {
            entries[$0].map { $0.pending!.record.stamp.timestamp.milliseconds > latest } ?? false
        }
        clock = DeviceClock(correction: clock.correction)
        for (key, entry) in entries.all {
            observe(entry.confirmed, keys.contains(key) ? nil : entry.pending)
        }
        // What is one transaction gets one stamp, in the order in which it was written.
        var stamps: [HybridTimestamp: HybridTimestamp] = [:]
        let old = Set(keys.compactMap { entries[$0]?.pending?.record.stamp.timestamp })
        for timestamp in old.sorted() { stamps[timestamp] = clock.issue(at: now).timestamp }
        stamp(keys, by: stamps)
    }
}
