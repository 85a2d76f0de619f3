// SPDX-License-Identifier: Apache-2.0

/// What the server knows of a store besides its records. A value: a commit that fails leaves the
/// copy from before.
package struct StoreState: Hashable, Sendable {
    package var lineage = Lineage()
    package var usage = Usage()
    /// The greatest timestamp that the store ever accepted.
    package var newest = HybridTimestamp.zero
    /// The greatest timestamp of a forgotten deletion.
    package var newestForgotten = HybridTimestamp.zero
    /// How many deletions are remembered.
    package var deletions = 0

    package struct Admitted: Hashable, Sendable {
        /// To be stored under the revision of ``position``; empty: nothing is to be stored.
        package var writes: [Record]
        package var results: [TransactionResult]
        package var position: Position
        /// To be stored with them, if the revision begins one.
        package var span: Lineage.Span?
    }

    package init() {}

    package init(
        lineage: Lineage, usage: Usage, newest: HybridTimestamp, newestForgotten: HybridTimestamp,
        deletions: Int
    ) {
        self.lineage = lineage
        self.usage = usage
        self.newest = newest
        self.newestForgotten = newestForgotten
        self.deletions = deletions
    }

    /// - Parameters:
    ///   - records: What the store has of the keys in the push.
    ///   - epoch: This run of the server.
    /// - Throws: ``ClockAhead``; then nothing changed.
    package mutating func admit(
        _ push: Push, records: [Key: Record], by admission: PushAdmission, in epoch: UInt64
    ) throws(ClockAhead) -> Admitted {
        let stored = PushAdmission.Stored(
            records: records, usage: usage, newest: newest, newestForgotten: newestForgotten)
        let decision = try admission.decide(push, on: stored)
        var span: Lineage.Span?
        if !decision.writes.isEmpty {
            usage = decision.usage
            newest = decision.newest
            deletions += Self.deletions(in: decision.writes, replacing: records)
            span = lineage.advance(in: epoch)
        }
        return Admitted(
            writes: decision.writes, results: decision.results, position: lineage.position,
            span: span)
    }

    /// Takes note that the deletions up to a revision are remembered no longer.
    /// - Parameter deletions: Their timestamps.
    package mutating func forget(_ deletions: [HybridTimestamp], through revision: Int64) {
        self.deletions -= deletions.count
        newestForgotten = deletions.reduce(newestForgotten, max)
        lineage.forgottenRevision = max(lineage.forgottenRevision, revision)
    }

    private static func deletions(in writes: [Record], replacing old: [Key: Record]) -> Int {
        writes.reduce(0) { sum, write in
            sum + (write.content == .deleted ? 1 : 0)
                - (old[write.key]?.content == .deleted ? 1 : 0)
        }
    }
}
