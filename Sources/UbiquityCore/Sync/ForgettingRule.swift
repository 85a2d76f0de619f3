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
    /// Of keys of up to ``Deletion/usualBytes``; a longer one counts as several.
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
        /// See ``weight(of:)``.
        package var weight: Int

        package init(
            revision: Int64, committed: Int64, timestamp: HybridTimestamp, weight: Int = 1
        ) {
            self.revision = revision
            self.committed = committed
            self.timestamp = timestamp
            self.weight = weight
        }

        /// Bytes of a key that make one.
        private static let usualBytes = 64
        /// What it takes besides.
        private static let overheadBytes = 16

        /// For how many the deletion of a key counts: it takes room.
        package static func weight(of key: Key) -> Int { weight(bytes: key.bytesCount) }

        /// The same of a key of so many bytes, its part's name included.
        package static func weight(bytes: Int) -> Int {
            let usual = usualBytes + overheadBytes
            return max(1, (bytes + overheadBytes + usual - 1) / usual)
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
        return [byAge, byWeight(deletions)].compactMap { $0?.revision }.max()
    }

    /// The last of those that are too many.
    private func byWeight(_ deletions: [Deletion]) -> Deletion? {
        var excess = deletions.reduce(-deletionsMax) { $0 + $1.weight }
        return deletions.prefix { deletion in
            defer { excess -= deletion.weight }
            return excess > 0
        }.last
    }
}
