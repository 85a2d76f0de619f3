// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The reason nothing of a push was committed.
package enum PushRefusal: Error, Hashable, Sendable {
    /// A write was stamped too far ahead.
    case clockAhead(ClockAhead)
    /// The answer would repeat too much.
    case answerTooLarge
    /// A stored record under one of the keys cannot be read.
    case unreadable
    /// The push would create a store, and the account has its maximum.
    case tooManyStores
    /// The disk is full, and the push does more than remove.
    case full
    /// The sender may no longer push.
    case notAllowed(AccessRefusal)
    /// The account was erased while the push was under way.
    case noSuchAccount

    /// The name in the metrics.
    var label: String {
        switch self {
        case .clockAhead: "clock-ahead"
        case .answerTooLarge: "answer-too-large"
        case .unreadable: "unreadable"
        case .tooManyStores: "too-many-stores"
        case .full: "storage-full"
        case .notAllowed: "not-allowed"
        case .noSuchAccount: "no-such-account"
        }
    }
}
