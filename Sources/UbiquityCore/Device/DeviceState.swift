// SPDX-License-Identifier: Apache-2.0

/// Who is signed in on this device, and which folder has the values of which account.
package struct DeviceState: Hashable, Sendable, Encodable {
    /// Nil: signed out, or never signed in.
    package var signedIn: SignedInAccount?
    /// The folder that the stores are in now.
    package var folder = "1"
    /// The folder of each account that was ever signed in here, by the account's identifier.
    package var folders: [String: String] = [:]
    /// The greatest number that a folder ever had; nil: no folder was ever wiped.
    package var lastFolder: Int?

    package init() {}

    /// Whether all folders are such as this library names them: they become parts of paths, and
    /// are removed with all that is in them.
    package var hasFolders: Bool {
        (folders.values + [folder]).allSatisfy { name in
            (1...64).contains(name.count)
                && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
        }
    }
}
