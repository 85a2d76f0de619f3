// SPDX-License-Identifier: Apache-2.0

import UbiquityCore

/// Opens what a server has, for checkers: they compare values.
struct Opener {
    /// Nil if the account is not sealed.
    var sealer: Sealer?
    /// Seals with the key before; nil if there was none.
    var older: Sealer?

    /// The same record with its value. One that does not open stays as it is, and no checker expects it.
    func opened(_ record: Record) -> Record {
        var elements = Int.max
        guard let sealer, record.content.isSealed,
            case .opened(let opened) = sealer.open(record, isCurrent: false, within: &elements)
        else { return record }
        return opened
    }

    func opened(_ records: [Key: Record]) -> [Key: Record] {
        sealer == nil ? records : records.mapValues(opened)
    }

    func opened(_ records: [Record]) -> [Record] { sealer == nil ? records : records.map(opened) }

    func opened(_ push: Push) -> Push {
        guard sealer != nil else { return push }
        var push = push
        push.transactions = push.transactions.map { transaction in
            transaction.mapContents { opened($0).content }
        }
        return push
    }

    func opened(_ results: [TransactionResult]) -> [TransactionResult] {
        if sealer == nil { return results }
        return results.map { result in
            guard case .committed(let writes) = result else { return result }
            return .committed(
                writes.map { write in
                    guard case .superseded(let record) = write else { return write }
                    return .superseded(by: opened(record))
                })
        }
    }

    /// The keys of writes that a server could read, or that no device can open.
    func readable(_ push: Push) -> Set<Key> {
        let clear = push.transactions.flatMap(\.writes).filter { write in
            write.content != .deleted && (!write.content.isSealed || opened(write).content.isSealed)
        }
        return Set(clear.map(\.key))
    }
}
