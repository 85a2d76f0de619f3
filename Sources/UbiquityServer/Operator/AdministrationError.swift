// SPDX-License-Identifier: Apache-2.0

/// The reason an operation of the operator failed, as a sentence for people.
package enum AdministrationError: Error, Hashable, Sendable {
    case nameInvalid(String)
    case accountExists(String)
    case noSuchAccount(String)
    case noSuchDevice(account: String)
    case noSuchApp(String)
    case storage(StorageError)

    init(_ error: StorageError, name: String) {
        switch error {
        case .accountExists: self = .accountExists(name)
        case .noSuchAccount: self = .noSuchAccount(name)
        case .noSuchDevice: self = .noSuchDevice(account: name)
        case .noSuchApp: self = .noSuchApp(name)
        default: self = .storage(error)
        }
    }
}

extension AdministrationError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .nameInvalid: AccountName.rule
        case .accountExists(let name):
            "the account \"\(name)\" already exists; create another code to sign in a device"
        case .noSuchAccount(let name): "there is no account \"\(name)\""
        case .noSuchDevice(let account):
            "the account \"\(account)\" has no such device; `ubiquity device list \(account)` "
                + "shows its devices"
        case .noSuchApp(let app): "the app \(app) is not registered"
        case .storage(let error): "\(error)"
        }
    }
}
