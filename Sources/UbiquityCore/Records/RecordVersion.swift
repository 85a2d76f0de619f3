// SPDX-License-Identifier: Apache-2.0

/// A write that a server has, or had until another one took its place.
package struct RecordVersion: Hashable, Sendable {
    package var record: Record
    /// When it came. Its time is 0 if that was before there was a history. Nil if nothing is known.
    package var came: Moment?
    package var outcome: Outcome

    package init(record: Record, came: Moment?, outcome: Outcome) {
        self.record = record
        self.came = came
        self.outcome = outcome
    }

    /// A revision of a store, and when it was committed, in milliseconds since 1970 by the server's
    /// clock. The clock may have been set back between two revisions.
    package struct Moment: Hashable, Sendable {
        package var revision: Int64
        package var milliseconds: Int64

        package init(revision: Int64, milliseconds: Int64) {
            self.revision = revision
            self.milliseconds = milliseconds
        }
    }

    /// The fate of the write.
    package enum Outcome: Hashable, Sendable {
        /// The store holds it.
        case current
        /// The store held it until the moment at which the write with this stamp replaced it. The
        /// stamp has no digest.
        case replaced(Moment, by: Stamp)
        /// When it came, there was a later write, which has this stamp, without its digest.
        case lost(Moment, by: Stamp)
    }

    /// When it ceased to be the store's; nil for a current one.
    package var ended: Moment? {
        switch outcome {
        case .current: nil
        case .replaced(let moment, by: _), .lost(let moment, by: _): moment
        }
    }
}

/// A store as it was at a revision.
package struct StoreSnapshot: Hashable, Sendable {
    /// The records of then, without tombstones.
    package var records: [Record]
    package var revision: Int64
    /// Keys whose earlier value is not known, because they have changed too often since, or are kept
    /// out of the history.
    package var forgottenKeys: Set<Key>
    package var serverMilliseconds: Int64

    package init(
        records: [Record], revision: Int64, forgottenKeys: Set<Key>,
        serverMilliseconds: Int64
    ) {
        self.records = records
        self.revision = revision
        self.forgottenKeys = forgottenKeys
        self.serverMilliseconds = serverMilliseconds
    }
}
