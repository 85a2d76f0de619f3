// SPDX-License-Identifier: Apache-2.0

/// A waiting transaction that no push may carry: it waits until it is made smaller, or a limit is
/// raised. A device makes none that it knows to be one.
package struct UnsendableTransaction: Hashable, Sendable {
    /// The first of its keys.
    package var key: Key
    package var keysCount: Int
    /// See ``Push/bytes``.
    package var bytes: Int
    /// The server's limit; nil if the server, or a proxy in front of it, refused that many bytes.
    package var bytesMax: Int?

    /// The largest such transaction; nil if there is none.
    /// - Parameter refusedBytes: The fewest bytes of a transaction that was refused as too large.
    package init?(
        of waiting: [PendingWrite], bytesMax: Int, refusedBytes: Int? = nil
    ) {
        var transactions: [UInt64: (key: Key, keys: Int, bytes: Int)] = [:]
        for write in waiting {
            let record = write.record
            let known = transactions[write.transaction]
            transactions[write.transaction] = (
                min(known?.key ?? record.key, record.key), (known?.keys ?? 0) + 1,
                (known?.bytes ?? 0) + record.pushBytes
            )
        }
        let largest = transactions.values.max { ($0.bytes, $1.key) < ($1.bytes, $0.key) }
        guard let largest, largest.bytes > bytesMax || largest.bytes >= refusedBytes ?? .max
        else { return nil }
        (key, keysCount, bytes) = (largest.key.whole, largest.keys, largest.bytes)
        self.bytesMax = largest.bytes > bytesMax ? bytesMax : nil
    }
}

extension UnsendableTransaction: CustomStringConvertible {
    /// With the way out, on one line and without a full stop.
    package var description: String {
        let others = keysCount == 1 ? "" : " and \(keysCount - 1) more written with it"
        let limit =
            bytesMax.map { "the server takes at most \($0) bytes at once" }
            ?? "the server, or a proxy in front of it, did not take as many"
        return "\"\(key)\"\(others), \(bytes) bytes, cannot be sent: \(limit); make the values "
            + "smaller, or have that limit raised"
    }
}

extension SyncEngine {
    /// See ``UnsendableTransaction``.
    var unsendable: UnsendableTransaction? {
        guard outbox.tooLarge != nil || waitingBytesBound > meta.limits.pushBytesMax
        else { return nil }
        return UnsendableTransaction(
            of: waiting.compactMap { entries[$0]?.pending },
            bytesMax: meta.limits.pushBytesMax, refusedBytes: outbox.tooLarge?.bytes)
    }
}
