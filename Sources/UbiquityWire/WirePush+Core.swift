// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

extension WirePush {
    /// - Parameter author: The device that need not be named as the author of its own writes.
    package init(_ push: Push, author: DeviceID) {
        self.init()
        tellsHad = push.tellsHad
        saved = push.saved?.text ?? ""
        transactions = push.transactions.map { transaction in
            .with {
                $0.writes = transaction.writes.map { write in
                    var wire = WireRecord(write)
                    if write.stamp.device == author { wire.device = "" }
                    if let had = transaction.had[write.key] {
                        wire.had = WireReplaced(had)
                        if had.device == author { wire.had.device = "" }
                    }
                    wire.unkept = transaction.unkept.contains(write.key)
                    return wire
                }
            }
        }
    }
}

extension Push {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WirePush, author: DeviceID) throws(WireError) {
        var transactions: [Transaction] = []
        transactions.reserveCapacity(wire.transactions.count)
        for (index, transaction) in wire.transactions.enumerated() {
            do { transactions.append(try Transaction(transaction, author: author)) } catch {
                throw WireError("transactions[\(index)]\(error)")
            }
        }
        self.init(
            transactions, tellsHad: wire.tellsHad,
            saved: try wire.saved.isEmpty ? nil : Cursor(wire: wire.saved, in: "saved"))
    }
}

extension Transaction {
    /// - Throws: ``WireError`` with the location of the fault, relative to the transaction.
    fileprivate init(_ wire: WireTransaction, author: DeviceID) throws(WireError) {
        var writes: [Record] = []
        var had: [Key: Stamp] = [:]
        var unkept: Set<Key> = []
        for (index, wire) in wire.writes.enumerated() {
            do {
                let write = try Record(wire, author: author)
                writes.append(write)
                if wire.hasHad { had[write.key] = try Stamp(had: wire.had, author: author) }
                if wire.unkept { unkept.insert(write.key) }
            } catch { throw WireError(".writes[\(index)]: \(error)") }
        }
        do { try self.init(writes, had: had, unkept: unkept) } catch {
            throw WireError(": \(error)")
        }
    }
}

extension Stamp {
    fileprivate init(had wire: WireReplaced, author: DeviceID) throws(WireError) {
        do { try self.init(wire: wire, author: author) } catch {
            throw WireError("\"had\": \(error)")
        }
    }
}

extension WirePushAnswer {
    package init(_ answer: PushAnswer) {
        self.init()
        cursor = answer.cursor.text
        serverMilliseconds = UInt64(clamping: answer.serverMilliseconds)
        results = answer.results.map(WireTransactionResult.init)
    }
}

extension PushAnswer {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WirePushAnswer) throws(WireError) {
        var results: [TransactionResult] = []
        for result in wire.results { results.append(try TransactionResult(result)) }
        self.init(
            cursor: try Cursor(wire: wire.cursor),
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds), results: results)
    }
}

extension Cursor {
    /// - Throws: ``WireError`` for a text that is not a cursor.
    package init(wire text: String, in field: String = "cursor") throws(WireError) {
        guard let cursor = Cursor(text) else { throw WireError("\"\(field)\" is not a cursor") }
        self = cursor
    }
}

extension WireTransactionResult {
    fileprivate init(_ result: TransactionResult) {
        self.init()
        switch result {
        case .committed(let writes):
            committed.writes = writes.map(WireWriteResult.init)
        case .refused(let refusal):
            refused.code = refusal.code
            refused.detail = refusal.detail
        }
    }
}

extension TransactionResult {
    fileprivate init(_ wire: WireTransactionResult) throws(WireError) {
        switch wire.outcome {
        case .committed(let committed):
            var writes: [WriteResult] = []
            for write in committed.writes { writes.append(try WriteResult(write)) }
            self = .committed(writes)
        case .refused(let refused):
            self = .refused(Refusal(code: refused.code, detail: refused.detail))
        case nil: throw WireError("a transaction's result has no outcome")
        }
    }
}

extension WireWriteResult {
    fileprivate init(_ result: WriteResult) {
        self.init()
        switch result {
        case .applied: outcome = .applied(true)
        case .superseded(let record): outcome = .superseded(WireRecord(record))
        case .olderThanCompacted: outcome = .olderThanForgotten(true)
        }
    }
}

extension WriteResult {
    fileprivate init(_ wire: WireWriteResult) throws(WireError) {
        switch wire.outcome {
        case .applied: self = .applied
        case .superseded(let record): self = .superseded(by: try Record(record))
        case .olderThanForgotten: self = .olderThanCompacted
        case nil: throw WireError("a write's result has no outcome")
        }
    }
}
