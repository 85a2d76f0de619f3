// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// A push that waits to be committed.
package struct PendingPush: Sendable {
    package var store: StoreReference
    package var push: Push
    /// The rights that must still hold at the commit; nil to skip the check. Between the first byte
    /// of a push and its commit, a device may be revoked, or its credential may expire.
    package var rights: DeviceRights?

    package init(store: StoreReference, push: Push, by rights: DeviceRights? = nil) {
        self.store = store
        self.push = push
        self.rights = rights
    }
}

/// The rules by which a storage decides a batch of pushes.
package struct CommitRules: Sendable {
    package var admission: PushAdmission
    /// A random number for this run of the server.
    package var run: UInt64
    package var storesPerAccountMax: Int

    package init(admission: PushAdmission, run: UInt64, storesPerAccountMax: Int) {
        self.admission = admission
        self.run = run
        self.storesPerAccountMax = storesPerAccountMax
    }

    /// Whether the answer repeats at most as much as a store may hold. This bounds its size before
    /// the push is decided.
    package func mayAnswer(_ push: Push, over records: [Key: Record]) -> Bool {
        push.repeatedBytes(over: records) <= admission.limits.storeBytesMax
    }

    package func epoch(of store: StoreReference) -> UInt64 {
        Position.epoch(ofRun: run, store: "\(store.account.string)/\(store.identifier)")
    }
}

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
