// SPDX-License-Identifier: Apache-2.0

extension DeviceState {
    /// Signs in. The first account ever takes over the values written before it. A returning
    /// account finds its values again, unsent ones included. A new account starts with a folder of
    /// its own and never sees the others' values.
    package mutating func signIn(_ account: SignedInAccount) {
        if let known = folders[account.account] {
            folder = known
        } else if folders.values.contains(folder) {
            folder = takeUnusedFolder()
        }
        folders[account.account] = folder
        signedIn = account
    }

    /// Signs out. The values stay readable and writable, and new writes stay with the account that
    /// was last signed in.
    /// - Returns: The account that was signed in.
    @discardableResult
    package mutating func signOut() -> SignedInAccount? {
        defer { signedIn = nil }
        return signedIn
    }

    /// Signs out and moves to an empty folder. The account's folder has no owner any more and is to
    /// be removed. Does nothing if nobody is signed in.
    /// - Returns: The account that was signed in.
    package mutating func signOutWiping() -> SignedInAccount? {
        guard let account = signOut() else { return nil }
        let wiped = folder
        folder = takeUnusedFolder()
        folders = folders.filter { $0.value != wiped }
        return account
    }

    /// A number that no folder ever had: a process that does not know of a wipe yet must not write
    /// into a folder that another account gets. The count starts again only if the file claims an
    /// impossible number of accounts.
    private mutating func takeUnusedFolder() -> String {
        let used = Set(folders.values).union([folder])
        let greatest = max(used.compactMap { Int($0) }.max() ?? 0, lastFolder ?? 0)
        var number = (0..<Self.folderNumberMax).contains(greatest) ? greatest + 1 : 1
        while used.contains("\(number)") { number += 1 }
        lastFolder = number
        return "\(number)"
    }

    private static let folderNumberMax = 1_000_000
}
