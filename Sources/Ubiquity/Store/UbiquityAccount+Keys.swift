// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The keys of a sealed account, whose values only the person's devices can read.
extension UbiquityAccount {
    /// A code that a locked device shows: a device with the account's key gives it the key, by
    /// ``handOver(code:home:)`` or `ubiquity approve`, while ``unlock(code:home:)`` waits here.
    /// <!-- Snippets/AccountReference.swift: unlock -->
    /// ```swift
    /// let code = try await UbiquityAccount.unlockCode()
    /// show("On a device that has the account's key, scan \(code).")
    /// try await UbiquityAccount.unlock(code: code)  // returns once it has given it
    /// show("This device is unlocked.")
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
    /// <!-- Snippets/AccountReference.swift: recover -->
    /// ```swift
    /// func recover(_ recoveryKey: String) async throws {
    ///     try await UbiquityAccount.unlock(code: recoveryKey)
    /// }
    /// ```
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
            let keyring: Keyring
            if let recoveryKey = RecoveryKey(text: code) {
                let mark = try await AccountClient.sealing(account)
                guard let opened = recoveryKey.open(mark.recovery) else {
                    throw UbiquityError(.refused, "that is not the account's recovery key")
                }
                keyring = opened
            } else {
                guard let secret = try keyCode(code).secret else {
                    throw UbiquityError(
                        .refused, "that is neither a code with keys nor a recovery key")
                }
                guard let handed = try await AccountClient.awaitHandover(with: secret, account)
                else { throw UbiquityError(.unreachable, "no device has given the key") }
                keyring = handed
            }
            // The account's key may have changed meanwhile.
            try home.keep(keyring, of: try await home.sealing())
        }
    }

    /// Gives the account's key to a locked device of the account, or those of the stores that it may use.
    /// <!-- Snippets/AccountReference.swift: hand-over -->
    /// ```swift
    /// func unlockOther(scanned: String) async throws {
    ///     try await UbiquityAccount.handOver(code: scanned)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - code: The one of ``unlockCode(home:)`` that the other device shows. It may be a stranger's: ask
    ///     the person whether the device is in front of them.
    ///   - home: As ``UbiquityConfiguration/home``.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/refused`` for any other code, or if this device
    ///   does not have the key, ``UbiquityError/Code/notSignedIn`` or
    ///   ``UbiquityError/Code/unreachable``.
    public static func handOver(code: String, home: String? = nil) async throws {
        try await request(home) { account, home in
            let code = try keyCode(code)
            guard let secret = code.secret, let asked = UnlockRequest(front: code.front) else {
                throw UbiquityError(.refused, "that is not the code of a locked device")
            }
            guard let keyring = try home.keyring(of: account) else {
                throw UbiquityError(.refused, "this device does not have the account's key")
            }
            try await AccountClient.handOver(asked.keys(of: keyring), with: secret, account)
        }
    }

    /// - Throws: ``UbiquityError``, which does not repeat the code.
    static func keyCode(_ text: String) throws -> KeyCode {
        guard let code = KeyCode(text) else {
            throw UbiquityError(
                .refused, "the code cannot be read: a part of it is missing, or was mistyped")
        }
        return code
    }
}

extension Keyring {
    /// The keys for a device with the rights to these stores; to all of this device's if there are
    /// none.
    package func granted(_ stores: [String]) -> Keyring {
        stores.isEmpty ? self : confined(to: Set(stores.compactMap { try? StoreIdentifier($0) }))
    }
}
