// SPDX-License-Identifier: Apache-2.0

/// Which deletions a store may forget: those remembered long enough that every live device has
/// passed; and beyond a bound the oldest, whoever has not passed them, for a store must not grow
/// without end. A device that comes with a cursor from before takes the whole store.
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

    package struct Deletion: Hashable, Sendable {
        package var revision: Int64
        /// The server's milliseconds since 1970.
        package var committed: Int64

        package init(revision: Int64, committed: Int64) {
            self.revision = revision
            self.committed = committed
        }
    }

    /// - Parameters:
    ///   - deletions: All that the store remembers, in the order of their revisions.
    ///   - passed: The least revision that a live device of the store is known to have; nil: no
    ///     device has a cursor.
    /// - Returns: The revision up to which deletions are to be forgotten; nil: none.
    package func horizon(of deletions: [Deletion], passed: Int64?, now: Int64) -> Int64? {
        let oldest = now - rememberedMilliseconds
        // Up to the first that must stay, for a server's clock may have been set back.
        let byAge = deletions.prefix { deletion in
            deletion.committed <= oldest && deletion.revision <= passed ?? .max
        }.last
        let excess = deletions.count - deletionsMax
        let byCount = excess > 0 ? deletions[excess - 1] : nil
        return [byAge, byCount].compactMap { $0?.revision }.max()
    }
}
