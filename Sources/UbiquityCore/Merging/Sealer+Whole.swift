// SPDX-License-Identifier: Apache-2.0

extension Sealer {
    /// Seals what a store has, so that the server needs nothing else of it: clear values, or values
    /// that were sealed with an older key.
    ///
    /// Deletions, and marks of what is removed of a maximum or minimum, are left out. Entries of
    /// dictionaries get random names. Everything keeps its time, and gets a digest that the server
    /// cannot compute.
    /// - Parameter run: A random number, for the names.
    /// - Throws: ``SealingFault`` for a clear value in a store that an older key has sealed: only the
    ///   server can have put it there.
    package func sealWhole(
        _ records: [Record], run: UInt64
    ) throws(SealingFault) -> SealedWhole {
        var names = PartNames(run: run)
        var whole = SealedWhole()
        whole.records.reserveCapacity(records.count)
        for record in records {
            var elements = Int.max
            var record = record
            if record.content.isSealed {
                guard
                    case .opened(let opened) = open(record, isCurrent: false, within: &elements)
                else {
                    whole.unopened.append(record.key)
                    continue
                }
                record = opened
            } else if generation > 1, record.content.value != nil {
                throw .clearValue(record.key)
            }
            guard let value = record.content.value else { continue }
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

/// A whole store after ``Sealer/sealWhole(_:run:)``.
package struct SealedWhole: Hashable, Sendable {
    package var records: [Record] = []
    /// The keys of what none of the device's keys opens. It is not among the records.
    package var unopened: [Key] = []
}
