// SPDX-License-Identifier: Apache-2.0

extension SyncEngine {
    /// The minimum size of a push, in bytes.
    static let pushBytesMin = 1_024
    /// The pause before a transaction that was too large alone is retried, in milliseconds.
    static let tooLargeRetryMilliseconds: Int64 = 3_600_000

    /// The next push: whole transactions that are on disk with their final stamps, oldest first, as
    /// many as the server accepts at once.
    mutating func nextPush(at now: ClockReading) -> PushInFlight? {
        guard isReached, pushInFlight == nil, !waiting.isEmpty,
            now.uptime >= outbox.retry?.at ?? .min
        else { return nil }
        // Its time has come. If it stayed set while nothing can be sent, `nextWake` would lie in
        // the past.
        outbox.state = .ready
        if let retry = outbox.tooLarge?.retry, retry.at <= now.uptime {
            outbox.tooLarge?.retry = nil
        }
        splitTooLarge()
        let transactions = sendable()
        guard !transactions.isEmpty else { return nil }
        if let milliseconds = outbox.bucket.take(now: now.uptime) {
            retryPush(after: milliseconds, at: now, isOrdered: true)
            return nil
        }
        counts.pushes += 1
        let push = Push(transactions, saved: receipts.saved)
        outbox.bucket.charge(bytes: push.bytes, now: now.uptime)
        outbox.state = .inFlight(
            PushInFlight(
                number: counts.pushes, push: push, sentAt: now, streams: counts.streams))
        return pushInFlight
    }

    var pushInFlight: PushInFlight? {
        if case .inFlight(let push) = outbox.state { push } else { nil }
    }

    /// The uptime of the next attempt to push; nil if nothing waits for one.
    var pushAt: Int64? {
        guard isReached, pushInFlight == nil, !waiting.isEmpty else { return nil }
        return outbox.retry?.at ?? outbox.tooLarge?.retry?.at
    }

    mutating func pushFailed(_ number: Int, _ failure: LinkFailure, at now: ClockReading) {
        guard let inFlight = pushInFlight, inFlight.number == number else { return }
        outbox.state = .ready
        var failure = failure
        if case .clockAhead(let serverMilliseconds) = failure.kind {
            do throws(LinkFailure) { try checkTime(serverMilliseconds, at: now) } catch {
                failure = error
            }
        }
        switch failure.kind {
        case .unauthorized, .sealed:
            link.close()
            waitAfter(failure, at: now)
        case .clockAhead where outbox.unknownPush != nil: link.close()
        case .clockAhead(let serverMilliseconds):
            restamp(aheadOf: serverMilliseconds, sentAt: inFlight.sentAt, at: now)
            retryPush(after: outbox.backoff.fail(using: &random), at: now)
        case .busy(let milliseconds), .tooManyStreams(let milliseconds):
            retryPush(after: milliseconds, at: now, isOrdered: true)
        case .refused: retryPush(after: Self.refusedRetryMilliseconds, at: now)
        case .tooLarge where inFlight.push.transactions.count > 1:
            let before = outbox.bytesMax
            shrink(after: inFlight.push)
            // At once. Round trips wait for the smaller pushes.
            if outbox.bytesMax < before { return }
            retryPush(after: outbox.backoff.fail(using: &random), at: now)
        case .tooLarge:
            failure.detail = hold(inFlight.push, failure, at: now)
            noteHeld()
        case .timedOut, .unreachable, .cursorGone:
            if failure.kind == .timedOut { shrink(after: inFlight.push) }
            outbox.unknownPush = counts.fetches
            retryPush(after: outbox.backoff.fail(using: &random), at: now)
        }
        if meta.link.lastError.exactString != failure.detail.exactString {
            meta.link.lastError = failure.detail
            unsaved.meta = true
        }
        // A push that is held back lets others pass, and is reported when they are sent.
        if failure.kind != .tooLarge || outbox.retry != nil { failRequests(failure) }
    }

    private mutating func shrink(after push: Push) {
        outbox.bytesMax = max(Self.pushBytesMin, min(outbox.bytesMax, push.bytes) / 2)
    }

    /// Holds back a push that was too large. A transaction is never split: one that is too large
    /// alone lets others pass, and is retried after a long time.
    /// - Returns: A description of the problem.
    private mutating func hold(
        _ push: Push, _ failure: LinkFailure, at now: ClockReading
    ) -> String {
        let bytes = push.bytes
        let key = push.transactions.first?.writes.first?.key.string ?? ""
        var failure = failure
        failure.detail =
            "the transaction with \"\(key)\", \(bytes) bytes, is larger than the server, or a "
            + "proxy in front of it, accepts; make it smaller, or have their limit raised"
        outbox.tooLarge = TooLarge(
            bytes: min(bytes, outbox.tooLarge?.bytes ?? .max), failure: failure,
            retry: Retry(
                at: now.uptime + Self.tooLargeRetryMilliseconds,
                notBefore: now.uptime + Self.refusedRetryMilliseconds))
        return failure.detail
    }

    /// Splits waiting transactions that no push can carry between the writes that have joined: other
    /// processes join without knowing of each other, and a limit may be lowered later. A half that
    /// is sent is better than a whole that never can be. No single write is split.
    private mutating func splitTooLarge() {
        let max = meta.limits.pushBytesMax
        guard waitingBytesBound > max else { return }
        for transaction in waitingBytes.filter({ $0.value > max }).keys.inOrder() {
            let records = waiting.compactMap { entries[$0]?.pending }
                .filter { $0.transaction == transaction }.map { $0.record }
            let writes = Dictionary(grouping: records) { $0.stamp }
            var (name, bytes) = (transaction, 0)
            for (_, records) in writes.inOrder(by: { $0.key < $1.key }) {
                let added = records.reduce(0) { $0 + $1.pushBytes }
                if bytes > 0, bytes + added > max { (name, bytes) = (random.next(), 0) }
                bytes += added
                guard name != transaction else { continue }
                for record in records {
                    entries.update(record.key) { $0.pending?.transaction = name }
                }
            }
        }
    }

    /// The cost of the waiting writes in a push, by their transactions.
    private var waitingBytes: [UInt64: Int] { bytesOfTransactions(writing: waiting) }

    /// The cost of the pending writes of these keys in a push, by their transactions.
    func bytesOfTransactions(writing keys: Set<Key>) -> [UInt64: Int] {
        keys.reduce(into: [:]) { bytes, key in
            guard let write = entries[key]?.pending else { return }
            bytes[write.transaction, default: 0] += write.record.pushBytes
        }
    }

    /// The writes of waiting transactions that are as large as one that was too large, which are held
    /// back with it.
    var heldWrites: Set<Key> {
        guard let tooLarge = outbox.tooLarge else { return [] }
        let bytes = waitingBytes
        return waiting.filter { key in
            guard let count = entries[key]?.pending.flatMap({ bytes[$0.transaction] })
            else { return false }
            return count >= tooLarge.bytes || count > meta.limits.pushBytesMax
        }
    }

    private mutating func retryPush(
        after milliseconds: Int64, at now: ClockReading, isOrdered: Bool = false
    ) {
        let at = now.uptime + milliseconds
        outbox.state = .waiting(Retry(at: at, notBefore: isOrdered ? at : now.uptime))
    }

    /// Gives new stamps to writes that the server refused as too far in its future. It never
    /// accepted them.
    private mutating func restamp(
        aheadOf serverMilliseconds: Int64, sentAt: ClockReading, at now: ClockReading
    ) {
        let measured = measureClock(serverMilliseconds, sentAt: sentAt, at: now)
        post(Notice(.serverChange, measured))
        let latest = serverMilliseconds + HybridTimestamp.aheadMax
        let keys = waiting.filter {
            entries[$0].map { $0.pending!.record.stamp.timestamp.milliseconds > latest } ?? false
        }
        clock = DeviceClock(correction: clock.correction)
        for (key, entry) in entries.all {
            // What was taken while the server's own clock was ahead must not hold back all writes.
            let confirmed = entry.confirmed.flatMap { isAhead($0, at: now) ? nil : $0 }
            observe(confirmed, keys.contains(key) ? nil : entry.pending, at: now)
        }
        // Including records that the stream has not brought and whose author has written again
        // meanwhile.
        for acknowledged in outbox.acknowledged.values {
            clock.observe(acknowledged.held.stamp.timestamp)
        }
        // A transaction gets one stamp, in the order in which it was written.
        var stamps: [Stamp: HybridTimestamp] = [:]
        let old = Set(keys.compactMap { entries[$0]?.pending?.record.stamp })
        for stamp in old.inOrder() { stamps[stamp] = clock.issue(at: now).timestamp }
        post(Notice(.serverChange, stamp(keys, by: stamps)))
    }
}

/// A transaction to be sent.
private struct OutgoingTransaction {
    private var writes: [Record] = []
    private var had: [Key: Stamp] = [:]
    private(set) var bytes = 0
    /// The smallest timestamp of its final writes, and of the writes they replaced that may have
    /// been sent.
    private(set) var oldest = HybridTimestamp(rawValue: .max)
    private(set) var newest = HybridTimestamp.zero
    private var first: Key?
    private var unkept: Set<Key> = []

    mutating func add(_ write: PendingWrite, over confirmed: Record?, isUnkept: Bool) {
        let record = write.record
        writes.append(record)
        if isUnkept { unkept.insert(record.key) }
        bytes += record.pushBytes
        if write.provisional == nil { oldest = min(oldest, record.stamp.timestamp) }
        newest = max(newest, record.stamp.timestamp)
        first = first.map { min($0, record.key) } ?? record.key
        guard let replaced = write.had else { return }
        had[record.key] = replaced
        if replaced.device == record.stamp.device, replaced != confirmed?.stamp.withoutDigest {
            oldest = min(oldest, replaced.timestamp)
        }
    }

    func isBefore(_ other: OutgoingTransaction) -> Bool {
        guard oldest == other.oldest, let first, let second = other.first else {
            return oldest < other.oldest
        }
        return first < second
    }

    /// Nil does not occur: the keys are unique, because each comes from a different entry.
    var transaction: Transaction? {
        try? Transaction(writes.inOrder { $0.key < $1.key }, had: had, unkept: unkept)
    }
}

extension SyncEngine {
    /// The transactions for the next push, oldest first.
    ///
    /// Everything in a push must be later than what was sent before, or a server that has dropped
    /// tombstones since would take it for a repeat. So a push also includes transactions that
    /// overlap in time, up to four times what the connection bears, because the overlap may never
    /// end. It does not where even the minimum is still too much. A transaction that was too large
    /// is sent alone.
    func sendable() -> [Transaction] {
        let ready = outgoing().inOrder { $0.isBefore($1) }
        let soft = min(meta.limits.pushBytesMax, outbox.bytesMax)
        let factor = outbox.bytesMax > Self.pushBytesMin ? 4 : 1
        let hard = min(meta.limits.pushBytesMax, soft > Int.max / factor ? Int.max : soft * factor)
        let tooLargeBytes = outbox.tooLarge?.bytes ?? .max
        var result: [Transaction] = []
        var bytes = 0
        var newest = HybridTimestamp.zero
        for next in ready
        where next.bytes < tooLargeBytes && next.bytes <= meta.limits.pushBytesMax {
            bytes += next.bytes
            let isApart = newest < next.oldest
            if !result.isEmpty, bytes > (isApart ? soft : hard) { break }
            newest = max(newest, next.newest)
            if let transaction = next.transaction { result.append(transaction) }
        }
        guard result.isEmpty, outbox.tooLarge?.retry == nil else { return result }
        return ready.first?.transaction.map { [$0] } ?? []
    }

    /// Whether no history must have the write. A process that excludes the key also says so for
    /// writes whose author did not: they may be of a version that could not.
    func isUnkept(_ write: PendingWrite) -> Bool {
        write.isUnkept || settings.excludes(write.record.key)
    }

    /// The transactions that are on disk with their final stamps, and not later than one that is
    /// not: a server that has decided about a later write of this device may take an earlier one for
    /// one whose tombstone was compacted since.
    private func outgoing() -> some Collection<OutgoingTransaction> {
        var outgoing: [UInt64: OutgoingTransaction] = [:]
        var held: Set<UInt64> = []
        for key in waiting {
            guard let entry = entries[key], let pending = entry.pending else { continue }
            outgoing[pending.transaction, default: OutgoingTransaction()].add(
                pending, over: entry.confirmed, isUnkept: isUnkept(pending))
            if pending.provisional != nil || pending.generation != generation
                || !entries.isSaved(key)
            {
                held.insert(pending.transaction)
            }
        }
        var bound = HybridTimestamp(rawValue: .max)
        for transaction in held {
            bound = min(bound, outgoing.removeValue(forKey: transaction)?.oldest ?? bound)
        }
        return outgoing.values.filter { $0.newest < bound }
    }
}
