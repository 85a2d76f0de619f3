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

    /// Exchanges a proof for a credential, and signs this device in for all its apps.
    ///
    /// An existing sign-in is given up once the new one works. The new one is given up if it cannot
    /// be stored.
    /// - Parameter review: Called if this device and the account both have values of a store.
    /// - Throws: ``LinkFailure`` if the server rejects the proof, ``HomeError`` if the sign-in
    ///   cannot be stored.
    package func signIn(
        server: String, by proof: SignInProof, deviceName: String,
        security: ConnectionSecurity = ConnectionSecurity(), review: FirstSyncReview? = nil
    ) async throws -> (account: SignedInAccount, old: DiscardedCredential?) {
        try await signIn(review) {
            try await AccountClient.signIn(
                server: server, by: proof, deviceName: deviceName, security: security)
        }
    }

    /// Waits until somebody has approved the sign-in, and does the same.
    package func signIn(
        approved pending: PendingSignIn, review: FirstSyncReview? = nil
    ) async throws -> (account: SignedInAccount, old: DiscardedCredential?) {
        try await signIn(review) { try await pending.account() }
    }

    /// Decides whose values to keep, before this device is signed in. An error gives the sign-in up.
    package typealias FirstSyncReview = ([FirstSyncStore]) async throws -> FirstSyncChoice

    private func signIn(
        _ review: FirstSyncReview?, _ exchange: () async throws -> SignedInAccount
    ) async throws -> (account: SignedInAccount, old: DiscardedCredential?) {
        // Fails early if the sign-in could not be stored, because a code works only once.
        try update { _ in }
        let account = try await exchange()
        var old: SignedInAccount?
        do {
            if let review {
                let stores = try await firstSync(of: account)
                if !stores.isEmpty {
                    try await keep(try await review(stores), in: stores, of: account)
                }
            }
            try update { state in
                old = state.signedIn
                state.signIn(account)
            }
        } catch {
            _ = await giveUp(account)
            throw error
        }
        // The sign-in has succeeded; anything left over is removed at the next start.
        try? removeAbandonedStores()
        guard let old else { return (account, nil) }
        let discarded = await giveUp(old)
        guard discarded.failure != nil, old.server == account.server,
            old.account == account.account
        else { return (account, discarded) }
        // Its key may be another one by now, to which the old credential must not be shown.
        do throws(LinkFailure) {
            try await AccountClient.revoke(device: old.device, account)
            return (account, DiscardedCredential(account: old))
        } catch { return (account, discarded) }
    }

    /// Signs this device out for all its apps, without telling the server.
    ///
    /// - Parameter wipes: Whether the account's values, unsent ones included, are removed from this
    ///   device. If not, they stay readable and writable.
    /// - Returns: The sign-in whose credential is to be given up; nil if nobody was signed in.
    /// - Throws: ``HomeError``.
    package func endSignIn(wipes: Bool) throws(HomeError) -> SignedInAccount? {
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
