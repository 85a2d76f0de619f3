// SPDX-License-Identifier: Apache-2.0

/// The reason the folder with this device's sign-in cannot be used.
package enum HomeError: Error, Hashable, Sendable {
    /// The system has no folder for application data, and no other path was given.
    case noPlace
    /// Other users of the machine could use the credential.
    case credentialReadableByOthers(_ path: String)
    /// Other users of the machine could put files into the folder.
    case writableByOthers(_ path: String)
    /// The folder or the file with the credential belongs to another user.
    case ofAnotherUser(_ path: String)
    case damaged(_ path: String, cause: String)
    case unreadable(_ path: String, cause: String)
    case unwritable(_ path: String, cause: String)
}

extension HomeError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .noPlace:
            "There is no folder for the data of this device: neither UBIQUITY_HOME nor HOME is set."
        case .credentialReadableByOthers(let path):
            "The file \(path) has this device's credential and can be read by other users. Make "
                + "it readable for you alone (chmod 600), and sign in again if others may have "
                + "read it."
        case .writableByOthers(let path):
            "The folder \(path) has this device's credential, and other users can put files into it. "
                + "Make it writable for you alone (chmod go-w)."
        case .ofAnotherUser(let path):
            "\(path) belongs to another user. Run the program as that user, or name another folder "
                + "with UBIQUITY_HOME."
        case .damaged(let path, let cause):
            "The file \(path) is damaged (\(cause)). Nothing was changed; move it elsewhere and "
                + "sign in again."
        case .unreadable(let path, let cause): "The file \(path) cannot be read (\(cause))."
        case .unwritable(let path, let cause): "\(path) cannot be written (\(cause))."
        }
    }
}
