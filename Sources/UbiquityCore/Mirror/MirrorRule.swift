// SPDX-License-Identifier: Apache-2.0

/// The action that a mirror takes for one key of an app's preferences and the store.
package enum MirrorStep: Hashable, Sendable {
    /// Nothing to do, or nothing may be done yet.
    case rest
    /// Both have the same value, which becomes the agreed one.
    case rebase
    /// The preferences take the store's value, or its deletion.
    case take
    /// The preferences' value or deletion is written to the store.
    case write
}

/// The way to compare all keys at a given time, see ``MirrorBaseline``.
package enum MirrorMode: Hashable, Sendable {
    /// The first download is under way: a key missing in the store may be on the server.
    case wait
    /// Earlier baselines say nothing about this store: the store's values win.
    case begin
    /// A value that differs from the agreed one has changed.
    case compare
    /// The store holds another account's values, and nothing of the earlier account may reach it.
    case replace
}

/// Decides, for one key, how to make preferences and store equal.
///
/// Nil means "no value" for all three. A registered default is not a value, and a key that both
/// have lost no longer has a baseline. A change is a difference from the last confirmed value.
/// If both changed, the preferences' change is proposed, and the store resolves the conflict by
/// its policy.
package enum MirrorRule {
    /// - Parameters:
    ///   - baseline: The last common value; nil also if there never was one.
    ///   - merges: Whether the key's policy keeps something of both of two values that were written
    ///     without knowledge of each other.
    package static func step<Value: Equatable>(
        baseline: Value?, local: Value?, remote: Value?, mode: MirrorMode, merges: Bool = false
    ) -> MirrorStep {
        if mode == .wait { return .rest }
        if local == remote { return baseline == local ? .rest : .rebase }
        if mode == .replace { return .take }
        if mode == .compare, baseline != nil { return local == baseline ? .take : .write }
        // Nothing was agreed on, or not with this store. The store's value wins: a fresh install
        // overwrites nothing.
        if local == nil { return .take }
        if remote == nil { return .write }
        return merges && local != baseline ? .write : .take
    }

    /// The base value of an operation; nil if it has none.
    ///
    /// If the store lost a value by accident, the whole of the preferences' value is
    /// new to it, not only the change.
    package static func base<Value: Equatable>(
        baseline: Value?, remote: Value?, mode: MirrorMode
    ) -> Value? {
        mode == .begin && remote == nil ? nil : baseline
    }
}

/// The baseline of a mirror: the account state in which preferences and store last agreed. It is
/// kept beside the baselines, and compared with the store's current state before any key is
/// compared.
package struct MirrorBaseline: Hashable, Sendable {
    /// The account that the store's values belong to; nil if there is none yet.
    package var account: String?
    /// Whether the first download of that account had completed.
    package var isSynced: Bool

    package init(account: String? = nil, isSynced: Bool = false) {
        self.account = account
        self.isSynced = isSynced
    }
}

/// The state of a mirror's store at one moment.
package struct MirroredStore: Hashable, Sendable {
    package var baseline: MirrorBaseline
    package var isSignedIn: Bool
    /// Whether the file may have been replaced by accident since the last agreement: it is empty, and
    /// its device knows of no earlier account.
    package var isNew: Bool

    package init(baseline: MirrorBaseline, isSignedIn: Bool, isNew: Bool) {
        self.baseline = baseline
        self.isSignedIn = isSignedIn
        self.isNew = isNew
    }

    /// - Parameter before: The state in which both last agreed; nil if they never did.
    package func mode(since before: MirrorBaseline?) -> MirrorMode {
        if isOfAnotherAccount(than: before) { return .replace }
        if isSignedIn, !baseline.isSynced { return .wait }
        guard let before else { return .begin }
        // The account's first download overrides what was agreed on before it.
        if baseline.account != before.account || baseline.isSynced != before.isSynced {
            return .begin
        }
        return isNew ? .begin : .compare
    }

    /// Whether it is another account's, or nobody's because this account's values were wiped.
    private func isOfAnotherAccount(than before: MirrorBaseline?) -> Bool {
        guard let account = before?.account, account != baseline.account else { return false }
        return baseline.account != nil || !isNew
    }
}
