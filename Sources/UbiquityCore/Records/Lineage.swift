// SPDX-License-Identifier: Apache-2.0

/// A place in a store's order of arrival, to resume from. Opaque to devices.
package struct Cursor: Hashable, Sendable, CustomStringConvertible {
    @Exact package private(set) var text: String

    /// Fails unless the text is 1 to 128 visible ASCII characters.
    package init?(_ text: String) {
        guard (1...128).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.text = text
    }

    package var description: String { text }
}

/// A cursor as the server understands it: a revision, and the epoch in which it was committed.
///
/// The revision alone is not enough. A server restored from a backup gives the same numbers to
/// other writes, and a device from before would miss them. So each run of the server is an epoch
/// with a random name, and a cursor is only valid in a store whose revision of that number belongs
/// to that epoch.
package struct Position: Hashable, Sendable {
    package var epoch: UInt64
    package var revision: Int64

    package init(epoch: UInt64, revision: Int64) {
        self.epoch = epoch
        self.revision = revision
    }

    /// The epoch of one store in one run of the server, so that no cursor of one store is valid in
    /// another: the hash of the store's name, seeded with the run's number.
    package static func epoch(ofRun run: UInt64, store name: String) -> UInt64 {
        max(1, StableHash(name, seed: run).value)
    }

    /// Fails for a cursor that no server of this kind issued.
    package init?(_ cursor: Cursor) {
        let parts = cursor.text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = UInt64(hexadecimal: String(parts[0])),
            let revision = Int64(parts[1]), revision >= 0
        else { return nil }
        self.init(epoch: epoch, revision: revision)
    }

    package var cursor: Cursor {
        Cursor("\(epoch.hexadecimal)-\(revision)")!
    }
}

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

    /// The position of a cursor up to which a device says it has saved the store; nil if the cursor
    /// is not of this history.
    package func passed(_ cursor: Cursor) -> Position? {
        Position(cursor).flatMap { contains($0) ? $0 : nil }
    }

    /// Whether a position is of this history.
    package func contains(_ position: Position) -> Bool {
        resumption(from: position) != .otherHistory
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
