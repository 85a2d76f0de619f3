// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Opens what a server has, for checkers: they compare values.
package struct Opener {
    /// Nil if the account is not sealed.
    var sealer: Sealer?
    /// Seals with the key before; nil if there was none.
    var older: Sealer?

    package init(sealer: Sealer? = nil, older: Sealer? = nil) {
        (self.sealer, self.older) = (sealer, older)
    }

    /// The same record with its value. One that does not open stays as it is, and no checker expects it.
    func opened(_ record: Record) -> Record {
        var elements = Int.max
        guard let sealer,
            case .value(.sealed(let box)) = record.content,
            let opened = sealer.open(box, of: record, within: &elements)
        else { return record }
        return opened
    }

    package func opened(_ records: [Key: Record]) -> [Key: Record] {
        sealer == nil ? records : records.mapValues(opened)
    }

    package func opened(_ records: [Record]) -> [Record] {
        sealer == nil ? records : records.map(opened)
    }

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

    /// The keys of writes that a server could read or guess, or that no device can open.
    func readable(_ push: Push) -> Set<Key> {
        var readable: Set<Key> = []
        for transaction in push.transactions {
            let opened = transaction.writes.map(opened)
            let guess = ValueFingerprint.digest(of: opened.map { ($0.key, $0.content) })
            for (write, opened) in zip(transaction.writes, opened) where write.content != .deleted {
                let isNamed = write.key.part?.text.string.first == "d"
                if !write.content.isSealed || opened.content.isSealed || isNamed
                    || write.stamp.digest == guess
                {
                    readable.insert(write.key)
                }
            }
        }
        return readable
    }

    // MARK: - A hostile server

    /// What a server could pass off with what it has of a record, though nobody has sealed it so.
    /// - Parameter record: Sealed with the present key.
    func forgeries(of record: Record) -> [String] {
        guard let sealer, case .value(.sealed(let box)) = record.content,
            box.generation == sealer.generation, let other = try? Key("other"),
            let part = PartID("v1")
        else { return [] }
        var elsewhere = record
        elsewhere.key = record.key.part.map { other.part($0) } ?? other
        var forged = ["as another key": elsewhere]
        if !record.key.isCount {
            var (later, foreign, twin, inside) = (record, record, record, record)
            later.stamp.timestamp = record.stamp.timestamp.next
            foreign.stamp = Stamp(
                record.stamp.timestamp, DeviceID(rawValue: ~record.stamp.device.rawValue),
                digest: record.stamp.digest)
            twin.stamp.digest = record.stamp.digest ^ 1
            inside.key = record.key.isPart ? record.key.whole : record.key.part(part)
            forged["at another time"] = later
            forged["of another device"] = foreign
            forged["of another transaction"] = twin
            forged["as another part"] = inside
            let known = opened(record)
            forged["in clear"] = known
            forged["with an older key"] = older?.seal(known)
        }
        var taken = forged.filter { isTaken($0.value) }.map(\.key).sorted()
        var changed = opened(record)
        changed.content = .value(.string("another value"))
        if !record.key.isCount, case .value(.sealed(let another)) = sealer.seal(changed).content,
            another.bytes.prefix(17) == box.bytes.prefix(17)
        {
            taken.append("with one tag for two values")
        }
        return taken
    }

    private func isTaken(_ record: Record) -> Bool {
        var elements = Int.max
        guard case .opened? = sealer?.open(record, within: &elements) else {
            return false
        }
        return true
    }
}
