// SPDX-License-Identifier: Apache-2.0

/// The baseline of a mirror: the account state in which preferences and store last agreed. It is
/// kept beside the agreed values, and compared with the store's current state before any key is
/// looked at.
package struct MirrorPact: Hashable, Sendable {
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
    package var pact: MirrorPact
    package var isSignedIn: Bool
    /// Whether the file may have been replaced by accident since the last agreement: it is empty, and
    /// its device knows of no earlier account.
    package var isNew: Bool

    package init(pact: MirrorPact, isSignedIn: Bool, isNew: Bool) {
        self.pact = pact
        self.isSignedIn = isSignedIn
        self.isNew = isNew
    }

    /// - Parameter before: The state in which both last agreed; nil if they never did.
    package func course(since before: MirrorPact?) -> MirrorCourse {
        if isOfAnotherAccount(than: before) { return .replace }
        if isSignedIn, !pact.isSynced { return .wait }
        guard let before else { return .begin }
        // The account's first download overrides what was agreed on before it.
        if pact.account != before.account || pact.isSynced != before.isSynced { return .begin }
        return isNew ? .begin : .compare
    }

    /// Whether it is another account's, or nobody's because this account's values were wiped.
    private func isOfAnotherAccount(than before: MirrorPact?) -> Bool {
        guard let account = before?.account, account != pact.account else { return false }
        return pact.account != nil || !isNew
    }
}
