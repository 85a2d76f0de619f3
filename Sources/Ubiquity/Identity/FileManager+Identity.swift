// SPDX-License-Identifier: Apache-2.0

public import Foundation

#if !canImport(Darwin)

extension FileManager {
    /// A token for the account that this device is signed in to, equal as long as the account is
    /// the same. Nil if there is no account.
    ///
    /// Apps written for Apple's systems check it before they use a store. Foundation has it on
    /// Apple's systems only. The first call reads a small file; later calls cost nothing.
    public var ubiquityIdentityToken: (any NSCoding & NSCopying & NSObjectProtocol)? {
        DefaultStore.shared.accountID.map { NSData(data: Data($0.utf8)) }
    }
}

extension Notification.Name {
    /// Posted when this device is signed in, signed out, or signed in to another account, if the
    /// app has used the default store or asked for the token before.
    ///
    /// Posted on a queue of this library's own, without an object.
    public static let NSUbiquityIdentityDidChange = Notification.Name(
        "NSUbiquityIdentityDidChangeNotification")
}

#endif
