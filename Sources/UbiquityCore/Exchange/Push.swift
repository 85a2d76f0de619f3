// SPDX-License-Identifier: Apache-2.0

/// Writes that apply all or not at all, at most one for each key.
package struct Transaction: Hashable, Sendable {
    package let writes: [Record]
    /// The stamps of the records that the writes replaced, see ``PendingWrite/had``.
    package let had: [Key: Stamp]
    /// The keys of the writes that must not be in the store's history, nor what was there before.
    package let unkept: Set<Key>

    /// - Throws: ``PushError`` if there is no write or a key occurs twice.
    package init(
        _ writes: [Record], had: [Key: Stamp] = [:], unkept: Set<Key> = []
    ) throws(PushError) {
        guard !writes.isEmpty else { throw .emptyTransaction }
        var keys = Set<Key>()
        for write in writes where !keys.insert(write.key).inserted {
            throw .repeatedKey(write.key)
        }
        self.writes = writes
        self.had = had
        self.unkept = unkept
    }

    private init(unchecked writes: [Record], _ had: [Key: Stamp], _ unkept: Set<Key>) {
        (self.writes, self.had, self.unkept) = (writes, had, unkept)
    }

    /// The same with other contents.
    package func mapContents(_ content: (Record) -> Content) -> Transaction {
        let writes = writes.map { write in
            Record(key: write.key, content: content(write), stamp: write.stamp)
        }
        return Transaction(unchecked: writes, had, unkept)
    }
}

/// The transactions that a device sends at once. They become one revision of the store.
package struct Push: Hashable, Sendable {
    package var transactions: [Transaction]
    /// Whether a write without an entry in ``Transaction/had`` is known to replace nothing that the
    /// server had. Clients of version 0.1 do not say.
    package var tellsHad: Bool
    /// The cursor up to which the device has saved the store; nil if it does not say.
    package var saved: Cursor?
    /// The generation of the key that sealed the values; 0 if they are not sealed.
    package var generation: UInt32 = 0

    package init(
        _ transactions: [Transaction], tellsHad: Bool = true, saved: Cursor? = nil
    ) {
        self.transactions = transactions
        self.tellsHad = tellsHad
        self.saved = saved
    }

    /// Whether no write adds anything, see ``Key/isTakenAway(by:)``.
    package var onlyTakesAway: Bool {
        transactions.allSatisfy { transaction in
            transaction.writes.allSatisfy { $0.key.isTakenAway(by: $0.content) }
        }
    }
}

extension Record {
    /// The cost of a write in addition to its key and value, in bytes. A deletion of a short key
    /// takes twenty bytes on the wire, but also a look-up, a row and a result.
    static let pushBytesMin = 256

    /// The cost of the record as a write of a push, see ``Push/bytes``, or in its answer.
    package var pushBytes: Int { Self.pushBytes(of: key, content) }

    static func pushBytes(of key: Key, _ content: Content) -> Int {
        pushBytesMin + key.bytesCount + (content.value?.quotaBytes ?? 0)
    }
}

extension Push {
    /// The cost of the push's writes. Device and server use the same rule: it is limited to
    /// ``StoreLimits/pushBytesMax`` and charged to the ``Allowance``.
    package var bytes: Int {
        transactions.lazy.flatMap { $0.writes }.reduce(0) { $0 + $1.pushBytes }
    }

    /// The bytes that the answer may repeat: where several transactions write one entry, the same
    /// record may supersede each of them. Our devices do not send such pushes, because a rewrite
    /// joins the waiting transaction.
    /// - Parameter records: The stored records of the push's keys.
    package func repeatedBytes(over records: [Key: Record]) -> Int {
        guard transactions.count > 1 else { return 0 }
        var greatest: [Key: Int] = [:]
        var sum = 0
        for write in transactions.lazy.flatMap({ $0.writes }) {
            let bytes = write.pushBytes
            if let known = greatest[write.key] {
                greatest[write.key] = max(known, bytes)
                sum += max(known, bytes)
            } else {
                greatest[write.key] = max(bytes, records[write.key]?.pushBytes ?? 0)
            }
        }
        return sum
    }
}

package enum PushError: Error, Hashable, Sendable, CustomStringConvertible {
    case emptyTransaction
    case repeatedKey(Key)

    package var description: String {
        switch self {
        case .emptyTransaction: "a transaction needs at least one write"
        case .repeatedKey(let key): "the key \"\(key)\" occurs twice in one transaction"
        }
    }
}

package struct PushAnswer: Hashable, Sendable {
    package var cursor: Cursor
    package var serverMilliseconds: Int64
    /// One for each transaction, in the order of the push.
    package var results: [TransactionResult]

    package init(cursor: Cursor, serverMilliseconds: Int64, results: [TransactionResult]) {
        self.cursor = cursor
        self.serverMilliseconds = serverMilliseconds
        self.results = results
    }
}

extension PushAnswer {
    /// Whether it answers each transaction and each write, with records of the same entries.
    func fits(_ push: Push) -> Bool {
        guard results.count == push.transactions.count else { return false }
        return zip(push.transactions, results).allSatisfy { transaction, result in
            guard case .committed(let results) = result else { return true }
            guard results.count == transaction.writes.count else { return false }
            return zip(transaction.writes, results).allSatisfy { write, result in
                guard case .superseded(let record) = result else { return true }
                return record.key == write.key
            }
        }
    }

    /// The records that replace the sent ones.
    package var superseding: [Record] {
        results.flatMap { result -> [Record] in
            guard case .committed(let results) = result else { return [] }
            return results.compactMap { result in
                guard case .superseded(let record) = result else { return nil }
                return record
            }
        }
    }
}

package enum TransactionResult: Hashable, Sendable {
    /// One result for each write, in the order of the transaction.
    case committed([WriteResult])
    case refused(Refusal)
}

/// The reason a transaction was refused: a machine-readable code and a sentence for people.
package struct Refusal: Error, Hashable, Sendable {
    @Exact package var code: String
    @Exact package var detail: String

    package init(code: String, detail: String) {
        self.code = code.clipped(to: Self.codeMax)
        self.detail = detail.clipped(to: LinkFailure.detailMax).visible()
    }

    /// The maximum length of a server's code, in Unicode scalars, because it is kept with each
    /// refused write.
    private static let codeMax = 64

    package init(_ violation: LimitViolation) {
        self.init(code: violation.code, detail: violation.description)
    }

    /// Not the server's: a later record came before the write was sent.
    package static let superseded = Refusal(
        code: "superseded", detail: "a value that was written later was there already")

    /// The key may have been deleted after this write, and the tombstone dropped since.
    package static let olderThanCompacted = Refusal(
        code: "older-than-forgotten",
        detail: "the key was, or may have been, deleted after this write was made")

    package static let sealed = Refusal(
        code: "sealed", detail: "the store takes no sealed values: its server reads its values")

    var isOlderThanCompacted: Bool { code.exactString == Self.olderThanCompacted.code.exactString }
}

package enum WriteResult: Hashable, Sendable {
    /// The store holds this write.
    case applied
    /// The store holds this later write.
    case superseded(by: Record)
    /// The write deletes something that the store does not have, before the tombstone horizon:
    /// there is nothing to delete. (Servers of version 0.1 also answer this to a value that may
    /// have been deleted.)
    case olderThanCompacted
}
