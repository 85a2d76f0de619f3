// SPDX-License-Identifier: Apache-2.0

internal import SwiftProtobuf
package import UbiquityCore

extension WirePush {
    /// - Parameter author: The device that need not be named as the author of its own writes.
    package init(_ push: Push, author: DeviceID) {
        self.init()
        tellsHad = push.tellsHad
        saved = push.saved?.text ?? ""
        generation = push.generation
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
        generation = wire.generation
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

extension WireChanges {
    /// - Parameter store: In a stream of several stores, the one that changed.
    package init(_ changes: ChangeSet, of store: StoreIdentifier? = nil) {
        self.init()
        self.store = store?.string ?? ""
        records = changes.records.map(WireRecord.init)
        cursor = changes.cursor.text
        serverMilliseconds = UInt64(clamping: changes.serverMilliseconds)
        whole = changes.isWhole
        horizonMilliseconds = UInt64(changes.horizon.milliseconds)
    }
}

extension ChangeSet {
    /// - Throws: ``WireError`` that describes the problem.
    package init(_ wire: WireChanges) throws(WireError) {
        self.init(
            records: try [Record](wire.records), cursor: try Cursor(wire: wire.cursor),
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds),
            isWhole: wire.whole,
            horizon: HybridTimestamp(
                milliseconds: Int64(wireMilliseconds: wire.horizonMilliseconds)))
    }
}

extension StreamedStore {
    /// - Throws: ``WireError`` that describes the problem.
    package static func list(_ wire: WireNewStream) throws(WireError) -> [StreamedStore] {
        guard (1...countMax).contains(wire.stores.count) else {
            throw WireError("\"stores\" must name 1 to \(countMax) stores")
        }
        var stores: [StreamedStore] = []
        var identifiers: Set<StoreIdentifier> = []
        for (index, wire) in wire.stores.enumerated() {
            do {
                let store = try StreamedStore(wire)
                guard identifiers.insert(store.identifier).inserted else {
                    throw WireError("the store is named twice")
                }
                stores.append(store)
            } catch { throw WireError("stores[\(index)]: \(error)") }
        }
        return stores
    }

    private init(_ wire: WireNewStream.Store) throws(WireError) {
        let identifier: StoreIdentifier
        do { identifier = try StoreIdentifier(wire.identifier) } catch {
            throw WireError("\(error)")
        }
        var since: Position?
        if !wire.since.isEmpty {
            since = Position(try Cursor(wire: wire.since, in: "since"))
            guard since != nil else { throw WireError("\"since\" was not issued by this server") }
        }
        self.init(
            identifier, since: since, isSaved: !wire.hasSaved || wire.saved,
            generation: wire.generation)
    }
}

extension WireConfig {
    package init(_ config: ServerConfig) {
        self.init()
        serverMilliseconds = UInt64(clamping: config.serverMilliseconds)
        limits.storeBytesMax = UInt64(config.limits.storeBytesMax)
        limits.keysMax = UInt64(config.limits.keysMax)
        limits.valueBytesMax = UInt64(config.limits.valueBytesMax)
        limits.pushBytesMax = UInt64(config.limits.pushBytesMax)
        switch config.limits.key {
        case .utf8Bytes(let max): limits.keyBytesMax = UInt64(max)
        case .utf16Units(let max): limits.keyUtf16Max = UInt64(max)
        }
        allowance.burst = UInt64(config.allowance.burst)
        allowance.perSecond = config.allowance.perSecond
        deletionsRememberedSeconds = UInt64(clamping: config.deletionsRememberedSeconds)
        keepAliveSeconds = UInt64(clamping: config.keepAliveSeconds)
    }
}

extension ServerConfig {
    /// A limit that is missing in the message keeps its default.
    package init(_ wire: WireConfig) {
        var limits = StoreLimits()
        func adopt(_ value: UInt64, _ limit: inout Int) {
            if value > 0 { limit = Int(clamping: value) }
        }
        adopt(wire.limits.storeBytesMax, &limits.storeBytesMax)
        adopt(wire.limits.keysMax, &limits.keysMax)
        adopt(wire.limits.valueBytesMax, &limits.valueBytesMax)
        adopt(wire.limits.pushBytesMax, &limits.pushBytesMax)
        if wire.limits.keyUtf16Max > 0 {
            limits.key = .utf16Units(Int(clamping: wire.limits.keyUtf16Max))
        } else if wire.limits.keyBytesMax > 0 {
            limits.key = .utf8Bytes(Int(clamping: wire.limits.keyBytesMax))
        }
        self.init(
            serverMilliseconds: Int64(wireMilliseconds: wire.serverMilliseconds), limits: limits,
            allowance: wire.hasAllowance
                ? Allowance(
                    burst: Int(clamping: wire.allowance.burst),
                    perSecond: wire.allowance.perSecond)
                : Allowance(),
            deletionsRememberedSeconds: Int64(clamping: wire.deletionsRememberedSeconds),
            keepAliveSeconds: Int64(clamping: wire.keepAliveSeconds))
    }
}

extension Int64 {
    /// A server's time in milliseconds since 1970, limited to 48 bits like the timestamps of
    /// writes, so that additions to it cannot overflow.
    package init(wireMilliseconds milliseconds: UInt64) {
        self = Int64(Swift.min(milliseconds, 1 << 48 - 1))
    }
}
