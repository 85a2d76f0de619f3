// SPDX-License-Identifier: Apache-2.0

/// Decides which tombstones a store may drop: those kept long enough and already passed by every
/// live device; and, beyond a maximum number, the oldest, whether passed or not, because a store
/// must not grow without end. A device with an older cursor then downloads the whole store.
///
/// The age of a tombstone is the smaller of two times, so that a jump of the clock makes none old:
/// how long the server has been running since, over all its runs, and how far the store's
/// timestamps have advanced.
package struct CompactionRule: Hashable, Sendable {
    package var retentionMilliseconds: Int64
    /// A device not seen for this long is not waited for.
    package var liveMilliseconds: Int64
    /// The sum of the ``Tombstone/weight``s.
    package var tombstonesMax: Int

    package init(retentionMilliseconds: Int64, liveMilliseconds: Int64, tombstonesMax: Int) {
        self.retentionMilliseconds = retentionMilliseconds
        self.liveMilliseconds = liveMilliseconds
        self.tombstonesMax = tombstonesMax
    }

    /// For the increments of folded counts, which the store keeps to recognise late writes.
    package static let folded = CompactionRule(
        retentionMilliseconds: 400 * 86_400_000, liveMilliseconds: 0, tombstonesMax: 50_000)

    package struct Tombstone: Hashable, Sendable {
        package var revision: Int64
        /// The server's running time at the commit, in milliseconds.
        package var committed: Int64
        package var timestamp: HybridTimestamp
        /// See ``Key/tombstoneWeight``.
        package var weight: Int

        package init(
            revision: Int64, committed: Int64, timestamp: HybridTimestamp, weight: Int = 1
        ) {
            self.revision = revision
            self.committed = committed
            self.timestamp = timestamp
            self.weight = weight
        }
    }

    /// - Parameters:
    ///   - tombstones: All tombstones of the store, in the order of their revisions.
    ///   - passed: The smallest revision that a live device of the store is known to have; nil if
    ///     no device has a cursor.
    ///   - running: The server's running time, in milliseconds.
    ///   - newest: The greatest timestamp that the store ever accepted.
    /// - Returns: The revision up to which tombstones are to be dropped; nil if none are.
    package func horizon(
        of tombstones: [Tombstone], passed: Int64?, running: Int64, newest: HybridTimestamp
    ) -> Int64? {
        func age(_ tombstone: Tombstone) -> Int64 {
            min(
                running - tombstone.committed,
                newest.milliseconds - tombstone.timestamp.milliseconds)
        }
        // Stops at the first one to keep, because timestamps are not in the order of revisions.
        let byAge = tombstones.prefix { tombstone in
            age(tombstone) >= retentionMilliseconds && tombstone.revision <= passed ?? .max
        }.last
        return [byAge, byWeight(tombstones)].compactMap { $0?.revision }.max()
    }

    /// The last tombstone of the excess.
    private func byWeight(_ tombstones: [Tombstone]) -> Tombstone? {
        var excess = tombstones.reduce(-tombstonesMax) { $0 + $1.weight }
        return tombstones.prefix { tombstone in
            defer { excess -= tombstone.weight }
            return excess > 0
        }.last
    }
}
