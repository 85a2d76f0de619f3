// SPDX-License-Identifier: Apache-2.0

/// A transaction to be sent.
private struct OutgoingTransaction {
    private var writes: [Record] = []
    private var had: [Key: Stamp] = [:]
    private(set) var bytes = 0
    /// The smallest timestamp of its writes, and of the writes they replaced that may have been
    /// sent.
    private(set) var oldest = HybridTimestamp(rawValue: .max)
    private(set) var newest = HybridTimestamp.zero
    private var first: Key?

    mutating func add(_ write: PendingWrite, over confirmed: Record?) {
        let record = write.record
        writes.append(record)
        bytes += record.pushBytes
        oldest = min(oldest, record.stamp.timestamp)
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

    /// Keys are unique here, because each comes from a different entry.
    var transaction: Transaction? {
        try? Transaction(writes.sorted { $0.key < $1.key }, had: had)
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
        let ready = outgoing().sorted { $0.isBefore($1) }
        let soft = min(meta.limits.pushBytesMax, pushBytesMax)
        let factor = pushBytesMax > Self.pushBytesMin ? 4 : 1
        let hard = min(meta.limits.pushBytesMax, soft > Int.max / factor ? Int.max : soft * factor)
        let tooLargeBytes = tooLarge?.bytes ?? .max
        var result: [Transaction] = []
        var bytes = 0
        var newest = HybridTimestamp.zero
        for next in ready where next.bytes < tooLargeBytes {
            bytes += next.bytes
            let isApart = newest < next.oldest
            if !result.isEmpty, bytes > (isApart ? soft : hard) { break }
            newest = max(newest, next.newest)
            if let transaction = next.transaction { result.append(transaction) }
        }
        guard result.isEmpty, tooLarge?.retry == nil else { return result }
        return ready.first?.transaction.map { [$0] } ?? []
    }

    /// The transactions that are on disk with their final stamps.
    private func outgoing() -> some Collection<OutgoingTransaction> {
        var outgoing: [UInt64: OutgoingTransaction] = [:]
        var held: Set<UInt64> = []
        for key in waiting {
            guard let entry = entries[key], let pending = entry.pending else { continue }
            outgoing[pending.transaction, default: OutgoingTransaction()].add(
                pending, over: entry.confirmed)
            if pending.provisional != nil || !entries.isSaved(key) {
                held.insert(pending.transaction)
            }
        }
        for transaction in held { outgoing[transaction] = nil }
        return outgoing.values
    }
}
