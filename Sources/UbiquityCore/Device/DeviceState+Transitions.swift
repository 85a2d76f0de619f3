// SPDX-License-Identifier: Apache-2.0

extension DeviceState {
    /// Signs in. What was written before the first sign-in of all becomes the account's; an
    /// account that comes back finds its values, unsent ones included; another one begins with
    /// a folder of its own and never sees them.
    package mutating func signIn(_ account: SignedInAccount) {
        if let known = folders[account.account] {
            folder = known
        } else if folders.values.contains(folder) {
            folder = takeUnusedFolder()
        }
        folders[account.account] = folder
        signedIn = account
    }

    /// Signs out. The values stay readable and writable, and what is written stays with the
    /// account that was signed in last.
    /// - Returns: Who was signed in.
    @discardableResult
    package mutating func signOut() -> SignedInAccount? {
        defer { signedIn = nil }
        return signedIn
    }

    /// Signs out, and takes an empty folder: the account's has no owner any more, and is to be
    /// removed. Nothing happens if nobody is signed in.
    /// - Returns: Who was signed in.
    package mutating func signOutWiping() -> SignedInAccount? {
        guard let account = signOut() else { return nil }
        let wiped = folder
        folder = takeUnusedFolder()
        folders = folders.filter { $0.value != wiped }
        return account
    }

    /// A number that no folder ever had: a process that has not heard of a wiping yet must not
    /// write where another account's values come to be. From the beginning only where a file says
    /// that there were more accounts than anybody has.
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
