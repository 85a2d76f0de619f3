// SPDX-License-Identifier: Apache-2.0

/// What a device does next to have its account sealed with the newest key, and every store with it.
///
/// It follows from what is on the disk and on the server alone, so any device with the key can finish
/// what another one began, and an interruption at any place does no harm. A new key is a *proposal*
/// until the server has taken its mark: of two devices that make one at once, one loses, and must not
/// have sealed anything with its own by then.
///
/// It stays one until every store is sealed with it. A device without a proposal has only the server's
/// word that a store is not sealed, and should ask a person: a server could have guesses sealed.
package enum SealingStep: Hashable, Sendable {
    /// Make a key for the first time, and keep it as a proposal before the server is told.
    case propose
    /// Send the proposal's mark, with a recovery key that was shown and typed back.
    case mark
    /// Keep the proposal as the account's keys: the server has its mark.
    case adopt
    /// Remove the proposal: another device was faster, or every store is sealed with it.
    case drop
    /// Read this store, seal all of it, and replace it.
    case seal(StoreIdentifier)
    case done
    /// The account has a key that this device does not have.
    case getKey
    /// The server has an older mark than this device, or none although it had one at the sign-in: it was
    /// restored, the account was reset, or the server lies. Nothing must be sent.
    case restored

    /// - Parameters:
    ///   - keyring: The device's keys of the account; nil if it has none.
    ///   - proposal: The keys that it has proposed; nil if there is no proposal.
    ///   - generation: That of the server's mark; 0 if the account is not sealed.
    ///   - check: That of the server's mark.
    ///   - wasSealed: Whether the account was at the sign-in, see ``DeviceState/sealedAccounts``.
    ///   - unsealed: The stores that the server says are not sealed with this generation yet.
    package static func next(
        keyring: Keyring?, proposal: Keyring?, generation: UInt32, check: Bytes32?,
        wasSealed: Bool, unsealed: [StoreIdentifier]
    ) -> SealingStep {
        let current = keyring?.current ?? 0
        // A confined device cannot tell whose mark it is.
        let isOwn = keyring?.check == nil || keyring?.check == check
        if generation == 0, keyring == nil, wasSealed { return .restored }
        if let proposal {
            guard proposal.current > 0 else { return .drop }
            if proposal.current == generation, proposal.check == check {
                // Older generations may have come since.
                guard current == generation, keyring?.check == check else { return .adopt }
                return unsealed.first.map { .seal($0) } ?? .drop
            }
            let isNext = current == generation && proposal.previous ?? 0 == generation
            guard isNext, generation == 0 || isOwn else { return .drop }
            // With two keys in between, nothing would open it.
            let waiting = generation == 0 ? nil : unsealed.first
            return waiting.map { .seal($0) } ?? .mark
        }
        if generation == 0, keyring == nil { return .propose }
        if current > generation { return .restored }
        guard current == generation, isOwn else { return .getKey }
        return unsealed.first.map { .seal($0) } ?? .done
    }
}
