// SPDX-License-Identifier: Apache-2.0

extension Sealer {
    /// The number of transactions that a store may have of one device at one time when it is sealed.
    /// Copies of a device make two now and then. A server can make up any number, with digests of what
    /// it guesses, and compare them sealed with that of the device's own write.
    package static let transactionsMax = 3

    /// Seals a whole store, so that its server needs nothing else of it: what this device has agreed
    /// on, and what it opens of the rest.
    ///
    /// The server's list says which records there are, because it knows the deletions and the sums of
    /// counts. Of each, the later one is sealed: what the server has, or what this device has agreed
    /// on, unless that may have been deleted since and forgotten. Where a box does not open, nobody
    /// with the key has written it, and the value that this device has agreed on is written anew, now
    /// and later than the box.
    ///
    /// What this device has not agreed on is sealed as if it had, so as little as possible is believed:
    /// a server could otherwise have its guesses sealed, and compare. A guess at what is agreed on is
    /// never sealed, because it would have to be later.
    ///
    /// Deletions, and marks of what is removed of a maximum or minimum, are left out. Entries of
    /// dictionaries get random names. Everything else keeps its time, and gets a digest that the server
    /// cannot compute.
    /// - Parameters:
    ///   - found: The whole store, as the server has it.
    ///   - agreed: What this device has agreed on with it, in clear, by key; empty if it never had the
    ///     store.
    ///   - device: The author of what is written anew.
    ///   - latest: The greatest time that is believed, in milliseconds.
    ///   - run: A random number, for the names.
    ///   - isRestored: Whether a person has said that the server may be an older copy: then clear values
    ///     count, and what any older key opens. Otherwise, only the key before does, because a thief may
    ///     have the others, and clear values only if there was none.
    /// - Throws: ``SealingFault`` for a clear value in a store that an older key has sealed, a box of
    ///   another of this device's keys than the one before, a key that occurs twice, a time after the
    ///   latest, and more than ``transactionsMax`` transactions of one device at one time: only a server
    ///   can have put them there.
    package func sealWhole(
        _ found: ChangeSet, agreed: [Key: Record] = [:], by device: DeviceID, latest: Int64,
        run: UInt64, isRestored: Bool = false
    ) throws(SealingFault) -> SealedWhole {
        var names = PartNames(run: run)
        var whole = SealedWhole()
        whole.records.reserveCapacity(found.records.count)
        let now = HybridTimestamp(milliseconds: min(found.serverMilliseconds, latest))
        var keys: Set<Key> = []
        var digests: [Stamp: [UInt64]] = [:]
        var elements = IntakeLimits(nil).message.elements
        for sent in found.records {
            let key = sent.key
            guard keys.insert(key).inserted else { throw .repeated(key) }
            guard sent.stamp.timestamp.milliseconds <= latest else { throw .ahead(key) }
            let own = agreed[key]
            var record: Record
            if let opened = try opened(sent, within: &elements, isRestored: isRestored) {
                record = own?.orLater(opened, horizon: found.horizon) ?? opened
            } else if let own, own.content.value != nil {
                record = own
                record.stamp = Stamp(max(now, sent.stamp.timestamp.next), device)
                whole.rewritten.append(sent)
            } else {
                whole.unopened.append(sent)
                continue
            }
            guard let value = record.content.value else { continue }
            let author = record.stamp.withoutDigest
            if !(digests[author]?.contains(record.stamp.digest) ?? false) {
                digests[author, default: []].append(record.stamp.digest)
                guard digests[author]?.count ?? 0 <= Self.transactionsMax else {
                    throw .contradictory(key)
                }
            }
            if let part = key.part {
                if part.policy?.isExtremum ?? false, ComparableValue(removed: value) != nil {
                    continue
                }
                if part.policy == .dictionary, !part.isHiddenEntry {
                    record.key = key.whole.part(names.nextHiddenEntry())
                    record.content = .value(
                        MergeState.hidden(ExactString(part.name), value))
                }
            }
            record.stamp.digest = digest(record.stamp)
            whole.records.append(seal(record))
        }
        return whole
    }

    /// The record with its value, or a deletion; nil if nobody with the key has written it.
    private func opened(
        _ record: Record, within elements: inout Int, isRestored: Bool
    ) throws(SealingFault) -> Record? {
        guard case .value(let value) = record.content else { return record }
        guard case .sealed(let box) = value else {
            guard previous == nil || isRestored else { throw .clearValue(record.key) }
            return record
        }
        let isOlder = box.generation != previous && open(box, of: record, within: &elements) != nil
        guard !isOlder || isRestored && box.generation < generation else {
            throw .otherGeneration(record.key)
        }
        return open(box, of: record, within: &elements)
    }
}

extension Record {
    /// This value, which a device has agreed on, or the server's if that is not older, or if this one
    /// may have been deleted since. What a server has summed up is its own to say. A deletion that a
    /// server lacks is sent to it afterwards.
    fileprivate func orLater(_ other: Record, horizon: HybridTimestamp) -> Record {
        let isSurelyNewer =
            other.isOlder(than: self) && content.value != nil && !isOfServer
            && stamp.timestamp.milliseconds > horizon.milliseconds
        return isSurelyNewer ? self : other
    }
}

/// A whole store after ``Sealer/sealWhole(_:agreed:by:latest:run:isRestored:)``.
package struct SealedWhole: Hashable, Sendable {
    package var records: [Record] = []
    /// The boxes that nobody with the key has written, with their times and devices, in whose place the
    /// last value that this device has agreed on was written anew.
    package var rewritten: [Record] = []
    /// The other boxes that nobody with the key has written. They are not among the records.
    package var unopened: [Record] = []
}
