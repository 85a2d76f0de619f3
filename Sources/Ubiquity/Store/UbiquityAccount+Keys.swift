// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// The keys of a sealed account, whose values only the person's devices can read.
extension UbiquityAccount {
    /// A code that a locked device shows: a device with the account's key gives it the key, by
    /// ``handOver(code:stores:home:)`` or `ubiquity approve`, while ``unlock(code:home:)`` waits here.
    /// <!-- Snippets/AddingADevice.swift: unlock -->
    /// ```swift
    /// func unlock() async throws {
    ///     let code = try await UbiquityAccount.unlockCode()
    ///     print("On a device that has the account's key, scan \(code).")
    ///     try await UbiquityAccount.unlock(code: code)
    /// }
    ///
    /// func unlockOther(scanned code: String) async throws {
    ///     try await UbiquityAccount.handOver(code: code)
    /// }
    /// ```
    ///
    /// It is a secret: whoever reads it, and can ask the server as a device of the account, gets the
    /// key. Show it on this device's screen, and send it nowhere.
    /// - Parameter home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notSignedIn`` or
    ///   ``UbiquityError/Code/unreachable``.
    public static func unlockCode(home: String? = nil) async throws -> String {
        try await request(home) { account, _ in
            let stores = try await AccountClient.ownDevice(account).stores.compactMap { name in
                try? StoreIdentifier(name)
            }
            return KeyCode(front: UnlockRequest(stores: stores).front, secret: .random()).text
        }
    }

    /// Gives this device the key of its sealed account. Its stores go on at once, with what was written
    /// meanwhile.
    ///
    /// - Parameters:
    ///   - code: One of ``unlockCode(home:)``, for which this waits until a device has given the key, 15
    ///     minutes at most; cancel the task to stop waiting. Or the account's recovery key.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` for a code that is neither, or
    ///   opens no key of this account, ``UbiquityError/Code/notSignedIn``,
    ///   ``UbiquityError/Code/unreachable``, also if no device gave the key in time, or
    ///   ``UbiquityError/Code/storage``; `CancellationError`.
    public static func unlock(code: String, home: String? = nil) async throws {
        try await request(home) { account, home in
            let secret = try UnlockSecret(given: code)
            if case .handover = secret, UnlockRequest(front: try KeyCode(given: code).front) == nil
            {
                throw KeyringRefusal.notOfLocked
            }
            let progress = try await home.sealing()
            if progress.step == .restored { throw UbiquityError(.refused, notAsBefore) }
            guard progress.isLocked || progress.server.generation == 0 else { return }
            try await home.unlock(with: secret, account)
        }
    }

    /// Gives a locked device of the account the keys that its code asks for: the account's, or those of
    /// some stores.
    ///
    /// - Parameters:
    ///   - code: The one of ``unlockCode(home:)`` that the other device shows. It may be a stranger's: ask
    ///     the person whether the device is in front of them. A device that may use some stores only can
    ///     show a code that asks for the key of all.
    ///   - stores: The identifiers of the only stores whose keys it gets; nil for all that it asks for.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` for any other code, or if this device
    ///   does not have the key, ``UbiquityError/Code/notSignedIn`` or
    ///   ``UbiquityError/Code/unreachable``.
    public static func handOver(
        code: String, stores: [String]? = nil, home: String? = nil
    ) async throws {
        try await request(home) { account, home in
            try await home.handOver(to: KeyCode(given: code), within: stores ?? [], account)
        }
    }

    private static let notAsBefore =
        "the server says that the account is not sealed, or with an older key, and this device knows "
        + "better: the account was reset, or the server is not honest. Sign out, and sign in again"
}
