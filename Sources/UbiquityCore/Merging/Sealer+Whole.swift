// SPDX-License-Identifier: Apache-2.0

extension Sealer {
    /// The number of transactions that a store may have of one device at one time when it is sealed.
    /// Copies of a device make two now and then. A server can make up any number, with digests of what
    /// it guesses, and compare them sealed with that of the device's own write.
    package static let transactionsMax = 3

    /// Seals what a store has, so that the server needs nothing else of it: clear values, or values
    /// that were sealed with the key before.
    ///
    /// What comes from the server is sealed as if this device had written it, so as little as possible
    /// is believed: a server could otherwise have its guesses sealed, and compare.
    ///
    /// Deletions, and marks of what is removed of a maximum or minimum, are left out. Entries of
    /// dictionaries get random names. Everything keeps its time, and gets a digest that the server
    /// cannot compute.
    /// - Parameters:
    ///   - latest: The greatest time that is believed, in milliseconds.
    ///   - run: A random number, for the names.
    /// - Throws: ``SealingFault`` for a clear value in a store that an older key has sealed, a key that
    ///   occurs twice, a time after the latest, and more than ``transactionsMax`` transactions of one
    ///   device at one time: only a server can have put them there.
    package func sealWhole(
        _ records: [Record], latest: Int64, run: UInt64
    ) throws(SealingFault) -> SealedWhole {
        var names = PartNames(run: run)
        var whole = SealedWhole()
        whole.records.reserveCapacity(records.count)
        var keys: Set<Key> = []
        var digests: [Stamp: [UInt64]] = [:]
        var elements = IntakeLimits(nil).message.elements
        for record in records {
            guard keys.insert(record.key).inserted else { throw .repeated(record.key) }
            guard record.stamp.timestamp.milliseconds <= latest else { throw .ahead(record.key) }
            var record = record
            if case .value(.sealed(let box)) = record.content {
                guard box.generation == previous,
                    let opened = open(box, of: record, within: &elements)
                else {
                    whole.unopened.append(record.key)
                    continue
                }
                record = opened
            } else if previous != nil, record.content.value != nil {
                throw .clearValue(record.key)
            }
            guard let value = record.content.value else { continue }
            let author = record.stamp.withoutDigest
            if !(digests[author]?.contains(record.stamp.digest) ?? false) {
                digests[author, default: []].append(record.stamp.digest)
                guard digests[author]?.count ?? 0 <= Self.transactionsMax else {
                    throw .contradictory(record.key)
                }
            }
            if let part = record.key.part {
                if part.policy?.isExtremum ?? false, ComparableValue(removed: value) != nil {
                    continue
                }
                if part.policy == .dictionary, !part.isHiddenEntry {
                    record.key = record.key.whole.part(names.nextHiddenEntry())
                    record.content = .value(
                        MergeState.hidden(ExactString(part.name), value))
                }
            }
            record.stamp.digest = digest(record.stamp)
            whole.records.append(seal(record))
        }
        return whole
    }
}

/// A whole store after ``Sealer/sealWhole(_:latest:run:)``.
package struct SealedWhole: Hashable, Sendable {
    package var records: [Record] = []
    /// The keys of what the key before does not open. It is not among the records.
    package var unopened: [Key] = []
}
