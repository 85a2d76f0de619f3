// SPDX-License-Identifier: Apache-2.0

public import Foundation

#if !canImport(Darwin)

extension FileManager {
    /// Stands for the account that this device is signed in to: equal as long as it is the same one.
    /// Nil if there is none.
    ///
    /// Apps written for Apple's systems ask it before they use a store. Foundation has it on Apple's
    /// systems only. The first call reads a small file; later ones cost nothing.
    public var ubiquityIdentityToken: (any NSCoding & NSCopying & NSObjectProtocol)? {
        DefaultStore.shared.accountID.map { NSData(data: Data($0.utf8)) }
    }
}

extension Notification.Name {
    /// Posted when this device is signed in, signed out, or signed in to another account, if the app
    /// has used the default store or asked for the token before.
    ///
    /// Posted from a queue of this library's own, without an object.
    public static let NSUbiquityIdentityDidChange = Notification.Name(
        "NSUbiquityIdentityDidChangeNotification")
}

#endif
