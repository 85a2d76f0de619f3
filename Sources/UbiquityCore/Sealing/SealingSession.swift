// SPDX-License-Identifier: Apache-2.0

/// What a device knows of the keys of one account, and what it decides from that: what it leaves for
/// other devices of the account, and what it takes. Shells send and ask; they decide nothing.
package struct SealingSession: Hashable, Sendable {
    /// The account's identifier.
    @Exact package var account: String
    /// The device's keys of the account; nil if it has none.
    package var keyring: Keyring?
    /// The keys that the device has proposed; nil if there is no proposal.
    package var proposal: Keyring?
    /// Whether the device knows that the account is sealed, with its key or without: it sends nothing in
    /// clear then, whatever a server says.
    package var isSealed: Bool

    package init(
        account: String, keyring: Keyring?, proposal: Keyring? = nil, isSealed: Bool = false
    ) {
        self.account = account
        self.keyring = keyring
        self.proposal = proposal
        self.isSealed = isSealed || keyring != nil
    }
}

// MARK: - Giving keys

extension SealingSession {
    /// The handover for a device that waits to be signed in.
    /// - Parameters:
    ///   - stores: The only stores that it may use; empty for all that this device may.
    ///   - generation: That of the server's mark, which a device without the key cannot check.
    package func handover(toStores stores: [StoreIdentifier], generation: UInt32) -> Handover {
        guard let keyring else { return isSealed || generation > 0 ? .noKey : .notSealed }
        let granted = keyring.granted(stores)
        return granted.isOfNoStore ? .noKey : .keys(granted)
    }

    /// The handover for a locked device that asks for keys by its code.
    /// - Parameter stores: The only stores whose keys it gets; empty for all that it asks for.
    /// - Throws: ``KeyringRefusal/lackingKeys`` unless this device has all that it asks for.
    package func handover(
        for asked: UnlockRequest, within stores: [StoreIdentifier] = []
    ) throws(KeyringRefusal) -> Handover {
        guard let keyring = keyring?.granted(stores), !keyring.isOfNoStore,
            asked.stores.allSatisfy(keyring.isOf)
        else { throw .lackingKeys }
        return .keys(keyring.granted(asked.stores))
    }
}

// MARK: - Getting keys

extension SealingSession {
    /// Unlocks the device with keys of a handover or of the recovery key, which join its own.
    /// - Parameters:
    ///   - generation: That of the server's mark; 0 if the account is not sealed.
    ///   - check: That of the server's mark.
    /// - Throws: ``KeyringRefusal``; nothing is changed.
    package mutating func unlock(
        with keyring: Keyring, generation: UInt32, check: Bytes32?
    ) throws(KeyringRefusal) {
        guard generation > 0 else { throw .notSealed }
        try keyring.check(generation: generation, check: check)
        try join(keyring)
    }

    /// Takes what the device learns of the account when it signs in. A server can keep it from being
    /// signed in, but cannot make it send values in clear: that only the device that let it in may say,
    /// or a person.
    /// - Parameters:
    ///   - handover: Nil if there was none, or none that the secret of the code opens.
    ///   - isAwaited: Whether the code had a secret, which whoever lets a device in answers.
    ///   - hadSealed: Whether this device has ever had a sealed account.
    ///   - generation: That of the server's mark; 0 if the account is not sealed.
    ///   - check: That of the server's mark.
    /// - Returns: Why a person has to be asked whether the account is not sealed. After a yes,
    ///   ``unseal()``; otherwise, the device must not be signed in.
    /// - Throws: ``KeyringRefusal`` for keys that are not the account's, or not those of this device.
    package mutating func signIn(
        _ handover: Handover?, isAwaited: Bool, hadSealed: Bool, generation: UInt32, check: Bytes32?
    ) throws(KeyringRefusal) -> UnsealedDoubt? {
        switch handover {
        case .keys(let keyring)?:
            // Keys from before the present one are of use: the device is locked, and knows it.
            if keyring.current >= generation {
                try keyring.check(generation: generation, check: check)
            }
            try join(keyring)
            return nil
        case .noKey?:
            isSealed = true
            return nil
        case .notSealed?, nil:
            guard generation == 0 else {
                isSealed = true
                return nil
            }
            if isSealed { return .wasSealed }
            if handover == nil, isAwaited { return .unanswered }
            return hadSealed ? .hadSealed : nil
        }
    }

    /// Forgets that the account is sealed, and its keys, because a person says so.
    package mutating func unseal() { (keyring, proposal, isSealed) = (nil, nil, false) }

    /// - Throws: ``KeyringRefusal/unrelated``; nothing is changed.
    mutating func join(_ keyring: Keyring) throws(KeyringRefusal) {
        self.keyring = try self.keyring?.joined(with: keyring) ?? keyring
        isSealed = true
    }
}

/// The reason that a device is not signed in to an account that its server calls clear, unless a person
/// knows that it is: the server may be after values that it can read.
package enum UnsealedDoubt: Error, Hashable, Sendable {
    /// The device has shown a secret, and nothing was left for it that this secret opens.
    case unanswered
    /// The device knows the account as a sealed one.
    case wasSealed
    /// The device has had another account that is sealed.
    case hadSealed
}

extension UnsealedDoubt: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unanswered:
            "no device of the account has answered the secret in the code, and only the server says that "
                + "the account is not sealed"
        case .wasSealed:
            "this account was sealed on this device, whose key of it would be removed, and only the server "
                + "says that it is not sealed any more"
        case .hadSealed:
            "this device has had a sealed account, and only the server says that this one is not sealed"
        }
    }
}
