// SPDX-License-Identifier: Apache-2.0

/// Who is signed in on this device, and which folder has the values of which account.
package struct DeviceState: Hashable, Sendable, Encodable {
    /// Nil: signed out, or never signed in.
    package var signedIn: SignedInAccount?
    /// The folder that the stores are in now.
    package var folder = "1"
    /// The folder of each account that was ever signed in here, by the account's identifier.
    package var folders: [String: String] = [:]
    /// The greatest number that a folder ever had; nil: there is only the first.
    package var lastFolder: Int?

    package init() {}

    /// The folders that are to be removed, of those that are there: a number that was given out and
    /// that no account has, nor the device now. A wiping that was cut off left them.
    ///
    /// None where no folder but the first was ever given out, as far as the file knows: it may have
    /// been lost, and the folders are all that there is. What has no folder's number is not ours.
    package func abandonedFolders(among names: [String]) -> [String] {
        guard let lastFolder, lastFolder > 0 else { return [] }
        let used = Set(folders.values).union([folder])
        return names.filter { name in
            guard let number = Int(name), name == "\(number)" else { return false }
            return (1...lastFolder).contains(number) && !used.contains(name)
        }
    }

    /// Whether all folders are such as this library names them: they become parts of paths, and
    /// are removed with all that is in them.
    package var hasFolders: Bool {
        (folders.values + [folder]).allSatisfy { name in
            (1...64).contains(name.count)
                && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        }
    }
}
