// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// What became of one push of a batch.
package enum PushOutcome: Hashable, Sendable {
    case committed(CommittedPush)
    /// A write was stamped too far ahead; nothing of the push applies.
    case clockAhead(ClockAhead)
    /// Its answer would repeat more than it may; nothing of the push applies.
    case tooLarge
    /// Something that the store has under one of its keys cannot be read; nothing of the push applies.
    case unreadable
    /// The account has as many stores as it may, and this would be one more.
    case tooManyStores
    /// The disk is full, and the push does not only take away.
    case full
    /// Who sent it may not push any more.
    case notAllowed(AccessRefusal)
    /// The account was erased while the push was under way.
    case noSuchAccount
}

/// What a push did.
package struct CommittedPush: Hashable, Sendable {
    /// The store's position after the push.
    package var position: Position
    package var results: [TransactionResult]
    /// What listeners are told; empty if the push changed nothing, and then it made no revision.
    package var writes: [Record]
    package var serverMilliseconds: Int64
    /// Deletions that the store remembers now.
    package var deletions: Int
    /// Increments of counts that it remembers as folded.
    package var folded: Int
    /// The store's tombstone horizon.
    package var horizon: HybridTimestamp
}
