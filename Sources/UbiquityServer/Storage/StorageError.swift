// SPDX-License-Identifier: Apache-2.0

/// Why a storage did not do what it was asked. Then it did nothing of it.
package enum StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    case accountExists
    case noSuchAccount
    case noSuchDevice
    case noSuchApp
    /// Wrong, used or expired; which of them is not told.
    case codeInvalid
    case tooMany(String)
    /// There is no room. It may come back.
    case full
    /// Something that the storage has was not written by a server, or is damaged.
    case unreadable
    /// The reason for the operator's log, without keys, values or secrets.
    case failed(String)

    package var description: String {
        switch self {
        case .accountExists: "an account of this name exists"
        case .noSuchAccount: "there is no account of this name"
        case .noSuchDevice: "the account has no such device"
        case .noSuchApp: "this app is not registered"
        case .codeInvalid: "the code is wrong, was used already, or has expired"
        case .tooMany(let things): "there are too many \(things)"
        case .full: "the disk is full"
        case .unreadable: "what the database has there cannot be read"
        case .failed(let reason): "the storage failed: \(reason)"
        }
    }
}
