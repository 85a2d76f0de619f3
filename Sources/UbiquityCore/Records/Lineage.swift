// SPDX-License-Identifier: Apache-2.0

/// The history of a store's epochs. Decides which cursors it can resume from.
package struct Lineage: Hashable, Sendable {
    /// The revisions from `firstRevision` on, up to the next span, were committed in this epoch.
    package struct Span: Hashable, Sendable {
        package var firstRevision: Int64
        package var epoch: UInt64

        package init(firstRevision: Int64, epoch: UInt64) {
            self.firstRevision = firstRevision
            self.epoch = epoch
        }
    }

    /// In the order of their revisions.
    package private(set) var spans: [Span]
    /// The newest revision; 0 if nothing was ever committed.
    package private(set) var revision: Int64
    /// The revision of the newest dropped tombstone; 0 if none was dropped.
    package var compactedRevision: Int64

    package init(spans: [Span] = [], revision: Int64 = 0, compactedRevision: Int64 = 0) {
        self.spans = spans
        self.revision = revision
        self.compactedRevision = compactedRevision
    }

    package var position: Position {
        Position(epoch: spans.last?.epoch ?? 0, revision: revision)
    }

    /// Counts one more committed push.
    /// - Returns: The span that begins with it, to be stored; nil if the epoch continues.
    package mutating func advance(in epoch: UInt64) -> Span? {
        revision += 1
        guard spans.last?.epoch != epoch else { return nil }
        let span = Span(firstRevision: revision, epoch: epoch)
        spans.append(span)
        return span
    }

    package enum Resumption: Hashable, Sendable {
        /// All changes after this revision bring the device up to date.
        case after(Int64)
        /// The cursor comes from another history: a restored copy or a wiped store.
        case otherHistory
        /// Tombstones newer than the cursor have been dropped.
        case compacted
    }

    package func resumption(from position: Position) -> Resumption {
        guard position.revision > 0 else {
            return compactedRevision > 0 ? .compacted : .after(0)
        }
        let epoch = spans.last { $0.firstRevision <= position.revision }?.epoch
        guard position.revision <= revision, epoch == position.epoch else { return .otherHistory }
        return position.revision < compactedRevision ? .compacted : .after(position.revision)
    }
}
