// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// A push that waits to be committed.
struct PendingPush: Sendable {
    var store: StoreReference
    var push: Push
    /// The rights that must still hold at the commit; nil to skip the check. Between the first byte
    /// of a push and its commit, a device may be revoked, or its credential may expire.
    var rights: DeviceRights?
}

/// The rules by which a storage decides a batch of pushes.
struct CommitRules: Sendable {
    /// A shared storage replaces the time by its own.
    var admission: PushAdmission
    /// The run of the server that the epochs name; nil for the storage's own.
    var run: UInt64?
    var storesPerAccountMax: Int

    /// The rules with the limits of the account.
    /// - Parameter generation: The account's, as of the transaction.
    func of(_ rights: DeviceRights?, generation: UInt32) -> CommitRules {
        var rules = self
        rules.admission.generation = generation
        guard let limits = rights?.limits else { return rules }
        rules.admission.limits = limits.applied(to: admission.limits)
        rules.admission.history = limits.applied(to: admission.history)
        return rules
    }

    /// The refusal of a push whose rights do not hold any more; nil if they do.
    func refusal(
        of rights: DeviceRights?, isSignedIn: (DeviceReference) throws -> Bool
    ) rethrows -> PushRefusal? {
        guard let rights else { return nil }
        if rights.hasExpired(at: admission.now) { return .notAllowed(.credentialExpired) }
        return try isSignedIn(rights.reference) ? nil : .notAllowed(.credentialInvalid)
    }

    /// Checks that a push was made with the account's key, and that the store is sealed with it.
    func checkSealing(_ push: Push, of state: StoreState) throws(PushRefusal) {
        do throws(SealingRefusal) {
            try SealingRefusal.check(push.generation, in: admission.generation)
            guard state.isReadable(with: push.generation) else { throw .storeUnsealed }
        } catch { throw .sealing(error) }
    }

    /// Whether the answer repeats at most as much as a store may hold. This bounds its size before
    /// the push is decided.
    func mayAnswer(_ push: Push, over records: [Key: Record]) -> Bool {
        push.repeatedBytes(over: records) <= admission.limits.storeBytesMax
    }
}

/// The reason nothing of a push was committed.
enum PushRefusal: Error, Hashable, Sendable {
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
    /// The sender has another key than the account, or the store is sealed with another.
    case sealing(SealingRefusal)
    /// A whole store cannot have such records.
    case records(String)
    /// The sender may no longer push.
    case notAllowed(AccessRefusal)
    /// The account was erased while the push was under way.
    case noSuchAccount
    /// The push could not be stored, though others of its group could.
    case failed(StorageError)

    /// The name in the metrics.
    var label: String {
        switch self {
        case .clockAhead: "clock-ahead"
        case .answerTooLarge: "answer-too-large"
        case .unreadable: "unreadable"
        case .tooManyStores: "too-many-stores"
        case .full: "storage-full"
        case .sealing: "sealed"
        case .records: "records"
        case .notAllowed: "not-allowed"
        case .noSuchAccount: "no-such-account"
        case .failed: "storage-failed"
        }
    }
}

extension PushRefusal {
    init(_ refusal: WholeRefusal) {
        self =
            switch refusal {
            case .sealing(let refusal): .sealing(refusal)
            case .clockAhead(let error): .clockAhead(error)
            case .record(let number, let refusal): .records("records[\(number)]: \(refusal.detail)")
            case .tooLarge(let refusal): .records(refusal.detail)
            }
    }
}
