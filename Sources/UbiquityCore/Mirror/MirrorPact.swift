// SPDX-License-Identifier: Apache-2.0

/// With what a mirror's agreements were made: kept beside them, and compared with the store as it is
/// now before any key is looked at.
package struct MirrorPact: Hashable, Sendable {
    /// The account that the store's values belong to; nil: none yet.
    package var account: String?
    /// Whether the first download of that account had completed.
    package var isSynced: Bool

    package init(account: String? = nil, isSynced: Bool = false) {
        self.account = account
        self.isSynced = isSynced
    }
}

/// The store of a mirror at one moment.
package struct MirroredStore: Hashable, Sendable {
    package var pact: MirrorPact
    package var isSignedIn: Bool
    /// Whether it may be another file than the one the agreements were made with, without anybody
    /// having wished so: it holds nothing, and its device knows of no earlier account.
    package var isNew: Bool

    package init(pact: MirrorPact, isSignedIn: Bool, isNew: Bool) {
        self.pact = pact
        self.isSignedIn = isSignedIn
        self.isNew = isNew
    }

    /// - Parameter before: With what the agreements were made; nil: there are none.
    package func course(since before: MirrorPact?) -> MirrorCourse {
        if isOfAnotherAccount(than: before) { return .replace }
        if isSignedIn, !pact.isSynced { return .wait }
        guard let before else { return .begin }
        // The account's first download decides over what was agreed on before it.
        if pact.account != before.account || pact.isSynced != before.isSynced { return .begin }
        return isNew ? .begin : .compare
    }

    /// Another account, or none because this one's values were wiped from the device.
    private func isOfAnotherAccount(than before: MirrorPact?) -> Bool {
        guard let account = before?.account, account != pact.account else { return false }
        return pact.account != nil || !isNew
    }
}
