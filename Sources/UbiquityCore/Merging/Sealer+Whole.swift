// SPDX-License-Identifier: Apache-2.0

extension Sealer {
    /// Seals what a store has, so that the server needs nothing else of it: clear values, or values
    /// that were sealed with an older key.
    ///
    /// Deletions, and marks of what is removed of a maximum or minimum, are left out, and so is what
    /// none of the keys opens. Entries of dictionaries get random names. Everything keeps its time, and
    /// gets a digest that the server cannot compute.
    /// - Parameter run: A random number, for the names.
    package func sealWhole(_ records: [Record], run: UInt64) -> [Record] {
        var names = PartNames(run: run)
        var sealed: [Record] = []
        sealed.reserveCapacity(records.count)
        for record in records {
            var elements = Int.max
            var record = record
            if case .value(.sealed(let box)) = record.content {
                guard let opened = open(box, of: record, within: &elements) else { continue }
                record = opened
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
            sealed.append(seal(record))
        }
        return sealed
    }
}
