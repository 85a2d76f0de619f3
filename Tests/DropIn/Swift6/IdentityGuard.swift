// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Asks whether there is an account before it uses the store, and notices when it is another.
@MainActor
final class IdentityGuard {
    private var token: (any NSCoding & NSCopying & NSObjectProtocol)?
    private var observer: (any NSObjectProtocol)?
    private(set) var changes = 0

    var isSignedIn: Bool { FileManager.default.ubiquityIdentityToken != nil }

    /// The store of the account, or nil without one.
    var store: NSUbiquitousKeyValueStore? {
        guard let token = FileManager.default.ubiquityIdentityToken else { return nil }
        self.token = token
        return .default
    }

    /// Where the app keeps what it has: in the account's store, else in its defaults.
    func save(_ value: String, forKey key: String, defaults: UserDefaults) -> Bool {
        defaults.set(value, forKey: key)
        guard let store else { return false }
        store.set(value, forKey: key)
        return store.synchronize()
    }

    func start() {
        token = FileManager.default.ubiquityIdentityToken
        observer = NotificationCenter.default.addObserver(
            forName: .NSUbiquityIdentityDidChange, object: nil, queue: .main
        ) { [weak self] _ in
            MainActor.assumeIsolated { self?.identityDidChange() }
        }
    }

    func stop() {
        if let observer { NotificationCenter.default.removeObserver(observer) }
        observer = nil
    }

    func identityDidChange() {
        let new = FileManager.default.ubiquityIdentityToken
        defer { token = new }
        switch (token, new) {
        case (nil, nil): break
        case (let old?, let new?) where old.isEqual(new): break
        default: changes += 1
        }
    }

    /// As the guides have it: the token is archived and compared at the next start.
    func archivedToken() throws -> Data? {
        guard let token = FileManager.default.ubiquityIdentityToken else { return nil }
        return try NSKeyedArchiver.archivedData(withRootObject: token, requiringSecureCoding: false)
    }
}
