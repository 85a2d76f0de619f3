// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension SealingProgress {
    /// What this device leaves for one that waits to be signed in, and has shown a secret: before it is
    /// approved, because it looks at once.
    /// - Parameter stores: The identifiers of the only stores that it may use; empty for all that this
    ///   device may.
    /// - Throws: ``StoreIdentifierError``.
    package func handover(toStores stores: [String]) throws -> Handover {
        session.handover(
            toStores: try stores.map { try StoreIdentifier($0) }, generation: server.generation)
    }
}

extension DeviceHome {
    /// Leaves keys for a locked device that asks for them by its code.
    /// - Parameter stores: The identifiers of the only stores whose keys it gets; empty for all that it asks
    ///   for.
    /// - Throws: ``KeyringRefusal/notOfLocked``, ``KeyringRefusal/lackingKeys``, ``LinkFailure``,
    ///   ``HomeError``, ``SealingError/signedOut``, ``StoreIdentifierError``.
    package func handOver(
        to code: KeyCode, within stores: [String] = [], _ account: SignedInAccount
    ) async throws {
        guard let secret = code.secret, let asked = UnlockRequest(front: code.front) else {
            throw KeyringRefusal.notOfLocked
        }
        let handover = try session(of: account).handover(
            for: asked, within: try stores.map { try StoreIdentifier($0) })
        try await AccountClient.leave(handover, with: secret, account)
    }

    /// Unlocks this device. With a code, waits until another device has given it keys.
    /// - Throws: ``KeyringRefusal``, ``LinkFailure``, ``HomeError``, ``SealingError/signedOut``,
    ///   `CancellationError`; nothing is changed.
    package func unlock(with secret: UnlockSecret, _ account: SignedInAccount) async throws {
        let mark = try await AccountClient.sealing(account)
        guard mark.generation > 0 else { throw KeyringRefusal.notSealed }
        let keyring =
            switch secret {
            case .recovery(let key): try key.open(mark.recovery)
            case .handover(let secret): try await AccountClient.awaitKeys(with: secret, account)
            }
        try await keep(keyring, of: account)
    }

    /// Joins keys that another device, or the recovery key, has given with those that this device has.
    /// The stores' programs take them at once. Asks for the account's mark, which may have changed
    /// since the keys were asked for.
    /// - Throws: ``LinkFailure``, ``KeyringRefusal``, ``HomeError``, ``SealingError/signedOut``, also if
    ///   the device has changed to another account meanwhile; nothing is changed.
    package func keep(_ keyring: Keyring, of account: SignedInAccount) async throws {
        let mark = try await AccountClient.sealing(account)
        try change(account) { state in
            try state.sealing?.unlock(
                with: keyring, generation: mark.generation, check: mark.check)
        }
    }

    private func session(of account: SignedInAccount) throws -> SealingSession {
        guard let session = try state(of: account).sealing else { throw SealingError.signedOut }
        return session
    }
}
