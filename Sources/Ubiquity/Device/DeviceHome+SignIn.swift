// SPDX-License-Identifier: Apache-2.0

internal import Foundation
package import UbiquityCore

extension DeviceHome {
    /// The name of a device that nobody has named: the host's, without its domain.
    package static var usualDeviceName: String {
        deviceName(ofHost: ProcessInfo.processInfo.hostName)
    }

    package static func deviceName(ofHost host: String) -> String {
        let name = host.prefix { $0 != "." }
        let isAddress = host.contains(":") || !name.contains { $0.isLetter }
        return isAddress ? host : String(name)
    }

    /// A credential that was given up, and the server's response.
    package struct DiscardedCredential: Sendable {
        package var account: SignedInAccount
        /// The reason the server could not be told and still knows the credential; nil if it was
        /// told.
        package var failure: LinkFailure?
    }

    /// A sign-in of this device that has worked.
    package struct SignIn: Sendable {
        package var account: SignedInAccount
        /// The sign-in that it has replaced; nil if there was none.
        package var old: DiscardedCredential?
        /// Whether the account is sealed, and whether this device has its key.
        package var sealing: SealingProgress
        /// Whether a device of the account has said so by a handover, and not the server alone.
        package var isVouched: Bool
    }

    /// Exchanges a proof for a credential, and signs this device in for all its apps.
    ///
    /// An existing sign-in is given up once the new one works. The new one is given up if it cannot
    /// be stored.
    /// - Parameters:
    ///   - secret: That of the code, for which a device of the account has left something.
    ///   - acceptsUnsealed: Called if the account is not sealed, as far as the server says, and a person
    ///     has to decide about that. A no gives the sign-in up.
    ///   - review: Called if this device and the account both have values of a store.
    /// - Throws: ``LinkFailure`` if the server rejects the proof, ``HomeError`` if the sign-in
    ///   cannot be stored, ``UnsealedDoubt``, ``KeyringRefusal`` for keys that are not the account's, or
    ///   not those of this device.
    package func signIn(
        server: String, by proof: SignInProof, deviceName: String,
        security: ConnectionSecurity = ConnectionSecurity(), secret: HandoverSecret? = nil,
        acceptsUnsealed: (UnsealedDoubt) throws -> Bool = { _ in false },
        review: FirstSyncReview? = nil
    ) async throws -> SignIn {
        try await signIn(secret, acceptsUnsealed, review) {
            try await AccountClient.signIn(
                server: server, by: proof, deviceName: deviceName, security: security)
        }
    }

    /// Waits until somebody has approved the sign-in, and does the same.
    /// - Parameter secret: The one that this device has shown.
    package func signIn(
        approved pending: PendingSignIn, secret: HandoverSecret? = nil,
        acceptsUnsealed: (UnsealedDoubt) throws -> Bool = { _ in false },
        review: FirstSyncReview? = nil
    ) async throws -> SignIn {
        try await signIn(secret, acceptsUnsealed, review) { try await pending.account() }
    }

    /// Decides whose values to keep, before this device is signed in. An error gives the sign-in up.
    package typealias FirstSyncReview = ([FirstSyncStore]) async throws -> FirstSyncChoice

    private func signIn(
        _ secret: HandoverSecret?, _ acceptsUnsealed: (UnsealedDoubt) throws -> Bool,
        _ review: FirstSyncReview?, _ exchange: () async throws -> SignedInAccount
    ) async throws -> SignIn {
        // Fails early if the sign-in could not be stored, because a code works only once.
        try update { _ in }
        let account = try await exchange()
        var old: SignedInAccount?
        let sealing: SealingProgress
        var handover: Handover?
        do {
            // If the server keeps it to itself, for whatever reason, that is for the person to judge.
            if let secret { handover = try? await AccountClient.handover(with: secret, account) }
            let mark = try await AccountClient.sealing(account)
            var isAccepted = false
            func adopt(_ state: inout DeviceState) throws {
                let hadSealed = state.hadSealed
                state.signIn(account)
                guard var session = state.sealing else { return }
                let doubt = try session.signIn(
                    handover, isAwaited: secret != nil, hadSealed: hadSealed,
                    generation: mark.generation, check: mark.check)
                if let doubt {
                    guard isAccepted else { throw doubt }
                    session.unseal()
                }
                state.sealing = session
            }
            var state = try load()
            do { try adopt(&state) } catch let doubt as UnsealedDoubt {
                guard try acceptsUnsealed(doubt) else { throw doubt }
                isAccepted = true
                try adopt(&state)
            }
            let known = state.keyring
            let isLocked = known == nil && state.isSealed
            if let review, !isLocked, (known?.current ?? 0) == mark.generation {
                let stores = try await firstSync(of: account, keyring: known)
                if !stores.isEmpty {
                    try await keep(
                        try await review(stores), in: stores, of: account, keyring: known)
                }
            }
            state = try update { state in
                old = state.signedIn
                try adopt(&state)
            }
            sealing = SealingProgress(account, state, mark)
        } catch {
            _ = await giveUp(account)
            throw error
        }
        // The sign-in has succeeded; anything left over is removed at the next start.
        try? removeAbandonedStores()
        var signIn = SignIn(
            account: account, sealing: sealing, isVouched: handover != nil)
        guard let old else { return signIn }
        signIn.old = await giveUp(old)
        guard signIn.old?.failure != nil, old.server == account.server,
            old.account == account.account
        else { return signIn }
        // Its key may be another one by now, to which the old credential must not be shown.
        if (try? await AccountClient.revoke(device: old.device, account)) != nil {
            signIn.old = DiscardedCredential(account: old)
        }
        return signIn
    }

    /// What a wipe would destroy: the stores with changes that only this device has.
    package struct UnsentStore: Hashable, Sendable {
        package var identifier: String
        /// The number of keys with such changes; nil for a file that cannot be read.
        package var keys: Int?
    }

    /// The stores of the folder in use with changes that the server does not have, as far as they are on
    /// the disk.
    /// - Throws: ``HomeError``.
    package func unsentStores() throws(HomeError) -> [UnsentStore] {
        var stores: [UnsentStore] = []
        for (identifier, path) in try storeFiles(in: load().folder) {
            let inspection = try? StoreInspection(path: path)
            let pending = inspection?.entries.filter { $0.pending != nil }.map(\.key.whole)
            let keys = pending.map { Set($0).count }
            if keys != 0 { stores.append(UnsentStore(identifier: identifier, keys: keys)) }
        }
        return stores
    }

    /// Signs this device out for all its apps, without telling the server.
    ///
    /// - Parameter wipes: Whether the account's values, unsent ones included, are removed from this
    ///   device. If not, they stay readable and writable.
    /// - Returns: The sign-in whose credential is to be given up; nil if nobody was signed in.
    /// - Throws: ``HomeError``.
    package func endSignIn(wipes: Bool) throws -> SignedInAccount? {
        var account: SignedInAccount?
        try update { state in
            account = wipes ? state.signOutWiping() : state.signOut()
        }
        do { try removeAbandonedStores() } catch {
            // Perhaps a folder of an earlier wipe: the removal is retried at the next start.
            if wipes { throw error }
        }
        return account
    }

    /// Asks the server to revoke a credential.
    package func giveUp(_ account: SignedInAccount) async -> DiscardedCredential {
        do throws(LinkFailure) {
            try await AccountClient.signOut(account)
            return DiscardedCredential(account: account)
        } catch {
            // It was revoked before.
            if error.kind == .unauthorized { return DiscardedCredential(account: account) }
            return DiscardedCredential(account: account, failure: error)
        }
    }

    /// Renames a device of the account. A new name of this device is stored here too.
    /// - Throws: ``LinkFailure``, ``HomeError``.
    package func rename(
        device: String, to name: String, _ account: SignedInAccount
    ) async throws -> ServerDevice {
        let renamed = try await AccountClient.rename(device: device, to: name, account)
        guard renamed.id == account.device else { return renamed }
        try update { state in
            guard state.signedIn?.device == renamed.id else { return }
            state.signedIn?.deviceName = renamed.name
        }
        return renamed
    }
}
