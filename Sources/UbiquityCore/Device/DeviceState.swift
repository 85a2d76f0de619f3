// SPDX-License-Identifier: Apache-2.0

/// The account that this device is signed in to, and the folder of each account's values.
package struct DeviceState: Hashable, Sendable, Encodable {
    /// Nil while signed out.
    package var signedIn: SignedInAccount?
    /// The folder in use.
    package var folder = "1"
    /// The folder of each account that ever signed in here, by account identifier.
    package var folders: [String: String] = [:]
    /// The greatest folder number ever used; nil if there is only the first folder.
    package var lastFolder: Int?

    package init() {}

    /// The existing folders to be removed: their number was given out, but no account has them and
    /// the device does not use them. An interrupted wipe left them behind.
    ///
    /// Empty if, according to the file, only the first folder was ever used: the file may have been
    /// lost, and the folders may be all that is left. Names that are not folder numbers are not
    /// ours.
    package func abandonedFolders(among names: [String]) -> [String] {
        guard let lastFolder, lastFolder > 0 else { return [] }
        let used = Set(folders.values).union([folder])
        return names.filter { name in
            guard let number = Int(name), name == "\(number)" else { return false }
            return (1...lastFolder).contains(number) && !used.contains(name)
        }
    }

    /// Whether all folder names are of the form that this library makes. They become parts of paths
    /// and are removed with everything in them.
    package var hasFolders: Bool {
        (folders.values + [folder]).allSatisfy { name in
            (1...64).contains(name.count)
                && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        }
    }
}
