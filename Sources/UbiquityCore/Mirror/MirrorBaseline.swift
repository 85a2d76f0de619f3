// SPDX-License-Identifier: Apache-2.0

/// The baseline of a mirror: the account state in which preferences and store last agreed. It is
/// kept beside the baselines, and compared with the store's current state before any key is
/// looked at.
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
