// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The reason a storage operation failed. Nothing of it was done.
package enum StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    case accountExists
    case noSuchAccount
    case noSuchDevice
    case noSuchApp
    /// Wrong, used or expired; the caller is not told which.
    case codeInvalid
    /// No sign-in request with this user code waits for a decision.
    case noSuchRequest
    /// Nobody has decided on the sign-in request yet.
    case signInPending
    case signInDenied
    case tooMany(String)
    /// Devices of an account: which ones, how many there are, and how many there may be.
    case tooManyDevices(String, Int, max: Int)
    /// The same for things that soon expire.
    case tooManyWaiting(String)
    case sealing(SealingRefusal)
    /// The disk is full. Space may become available again.
    case full
    /// Something in the storage was not written by a server, or is damaged.
    case unreadable
    /// The reason for the operator's log, without keys, values or secrets.
    case failed(String)

    package var description: String {
        switch self {
        case .accountExists: "an account with this name already exists"
        case .noSuchAccount: "there is no account with this name"
        case .noSuchDevice: "the account has no such device"
        case .noSuchApp: "this app is not registered"
        case .codeInvalid: "the code is wrong, has already been used, or has expired"
        case .noSuchRequest: "no device is waiting with this code"
        case .signInPending: "the sign-in was not approved yet"
        case .signInDenied: "the sign-in was denied"
        case .tooMany(let things), .tooManyWaiting(let things): "there are too many \(things)"
        case .tooManyDevices(let which, let count, let max):
            "there are too many devices \(which): \(count), and at most \(max) are allowed"
        case .sealing: "the account is sealed with another key"
        case .full: "the disk is full"
        case .unreadable: "a record in the database cannot be read"
        case .failed(let reason): "the storage failed: \(reason)"
        }
    }
}
