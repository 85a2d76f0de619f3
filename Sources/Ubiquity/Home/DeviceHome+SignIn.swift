// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

extension DeviceHome {
    /// A credential that is given up, and what the server said to it.
    package struct GivenUp: Sendable {
        package var account: SignedInAccount
        /// Why the server was not told, and still knows the credential; nil: it was.
        package var failure: LinkFailure?
    }

    /// Exchanges a proof for a credential, and signs this device in for all its apps.
    ///
    /// A sign-in that there is already is given up once the new one works; the new one is given up where it
    /// cannot be kept.
    /// - Throws: ``LinkFailure`` if the server does not take the proof, ``HomeError`` if the sign-in
    ///   cannot be kept.
    package func signIn(
        server: String, by proof: SignInProof, deviceName: String,
        security: ConnectionSecurity = ConnectionSecurity()
    ) async throws -> (account: SignedInAccount, old: GivenUp?) {
        // A code works once: not for nothing.
        try update { _ in }
        let account = try await AccountClient.signIn(
            server: server, by: proof, deviceName: deviceName, security: security)
        var old: SignedInAccount?
        do {
            try update { state in
                old = state.signedIn
                state.signIn(account)
            }
        } catch {
            _ = await giveUp(account)
            throw error
        }
        // The sign-in has worked; what is left is removed at the next start.
        try? removeAbandonedStores()
        guard let old else { return (account, nil) }
        return (account, await giveUp(old))
    }

    /// Signs this device out for all its apps, on this device alone.
    ///
    /// - Parameter wipes: Whether the account's values, unsent ones included, are removed from this
    ///   device. Else they stay, readable and writable.
    /// - Returns: Whose credential is to be given up; nil: nobody was signed in.
    /// - Throws: ``HomeError``.
    package func endSignIn(wipes: Bool) throws(HomeError) -> SignedInAccount? {
        var account: SignedInAccount?
        try update { state in
            account = wipes ? state.signOutWiping() : state.signOut()
        }
        do { try removeAbandonedStores() } catch {
            // Of an earlier wiping, perhaps: it is tried again at the next start.
            if wipes { throw error }
        }
        return account
    }

    /// Has the server forget a credential.
    package func giveUp(_ account: SignedInAccount) async -> GivenUp {
        do throws(LinkFailure) {
            try await AccountClient.signOut(account)
            return GivenUp(account: account)
        } catch {
            // It was revoked before.
            if error.kind == .unauthorized { return GivenUp(account: account) }
            return GivenUp(account: account, failure: error)
        }
    }
}
