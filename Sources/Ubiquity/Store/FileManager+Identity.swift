// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
public import Foundation
internal import Synchronization
internal import UbiquityCore

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

/// Tracks the account that this device is signed in to, and posts `NSUbiquityIdentityDidChange`
/// when it changes.
///
/// Shared state: `known`, guarded by its mutex, because it is changed where the sign-in is read and
/// used anywhere.
final class DeviceIdentity: Sendable {
    private let device: DeviceAccount
    /// Nil before the first read.
    private let known = Mutex<String??>(nil)
    /// A queue of its own, because a post may wait for an observer.
    private let queue = DispatchQueue(label: "ubiquity.identity")

    init(_ device: DeviceAccount) {
        self.device = device
        // Before the first read, or a sign-in in between would be missed.
        _ = device.watch { [weak self] in self?.look() }
        let account = (try? device.current())?.signedIn?.account
        known.withLock { if $0 == nil { $0 = .some(account) } }
    }

    var accountID: String? { known.withLock { $0 ?? nil } }

    private func look() {
        // If it cannot be read, the known account stays, and a store that follows the sign-in
        // retries.
        guard let state = try? device.current() else { return }
        let account = state.signedIn?.account
        let isChanged = known.withLock { known in
            defer { known = .some(account) }
            return known != nil && known != .some(account)
        }
        guard isChanged else { return }
        queue.async {
            NotificationCenter.default.post(name: .NSUbiquityIdentityDidChange, object: nil)
        }
    }
}
