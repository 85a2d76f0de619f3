// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The outcome of one push of a batch.
package enum PushOutcome: Hashable, Sendable {
    case committed(CommittedPush)
    /// A write was stamped too far ahead; nothing of the push applies.
    case clockAhead(ClockAhead)
    /// The answer would repeat too much; nothing of the push applies.
    case tooLarge
    /// A stored record under one of the keys cannot be read; nothing of the push applies.
    case unreadable
    /// The push would create a store, and the account has its maximum.
    case tooManyStores
    /// The disk is full, and the push does more than remove.
    case full
    /// The sender may no longer push.
    case notAllowed(AccessRefusal)
    /// The account was erased while the push was under way.
    case noSuchAccount
}

/// The effect of a push.
package struct CommittedPush: Hashable, Sendable {
    /// The store's position after the push.
    package var position: Position
    package var results: [TransactionResult]
    /// The records to send to listeners. Empty if the push changed nothing and made no revision.
    package var writes: [Record]
    package var serverMilliseconds: Int64
    /// The number of tombstones in the store, by weight.
    package var deletions: Int
    /// The number of stored increments of folded counts.
    package var folded: Int
    /// The store's tombstone horizon.
    package var horizon: HybridTimestamp
}
