// SPDX-License-Identifier: Apache-2.0

/// Which deletions a store may forget: those remembered long enough that every live device has
/// passed; and beyond a bound the oldest, whoever has not passed them, for a store must not grow
/// without end. A device that comes with a cursor from before takes the whole store.
///
/// A deletion's age is the lesser of two times, so that a clock which jumps makes none old: how long
/// the server has run since, all its runs together, and how far the timestamps of the store have come.
package struct ForgettingRule: Hashable, Sendable {
    package var rememberedMilliseconds: Int64
    /// A device not seen for so long is not waited for.
    package var liveMilliseconds: Int64
    package var deletionsMax: Int

    package init(rememberedMilliseconds: Int64, liveMilliseconds: Int64, deletionsMax: Int) {
        self.rememberedMilliseconds = rememberedMilliseconds
        self.liveMilliseconds = liveMilliseconds
        self.deletionsMax = deletionsMax
    }

    /// Of the increments of counts that a store has folded, which it remembers for what comes late of them.
    package static let folded = ForgettingRule(
        rememberedMilliseconds: 400 * 86_400_000, liveMilliseconds: 0, deletionsMax: 50_000)

    package struct Deletion: Hashable, Sendable {
        package var revision: Int64
        /// The server's running time when it was committed, in milliseconds.
        package var committed: Int64
        package var timestamp: HybridTimestamp

        package init(revision: Int64, committed: Int64, timestamp: HybridTimestamp) {
            self.revision = revision
            self.committed = committed
            self.timestamp = timestamp
        }
    }

    /// - Parameters:
    ///   - deletions: All that the store remembers, in the order of their revisions.
    ///   - passed: The least revision that a live device of the store is known to have; nil: no
    ///     device has a cursor.
    ///   - running: The server's running time, in milliseconds.
    ///   - newest: The greatest timestamp that the store ever accepted.
    /// - Returns: The revision up to which deletions are to be forgotten; nil: none.
    package func horizon(
        of deletions: [Deletion], passed: Int64?, running: Int64, newest: HybridTimestamp
    ) -> Int64? {
        func age(_ deletion: Deletion) -> Int64 {
            min(
                running - deletion.committed,
                newest.milliseconds - deletion.timestamp.milliseconds)
        }
        // Up to the first that must stay, for timestamps are in another order than revisions.
        let byAge = deletions.prefix { deletion in
            age(deletion) >= rememberedMilliseconds && deletion.revision <= passed ?? .max
        }.last
        let excess = deletions.count - deletionsMax
        let byCount = excess > 0 ? deletions[excess - 1] : nil
        return [byAge, byCount].compactMap { $0?.revision }.max()
    }
}
