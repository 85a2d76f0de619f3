// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The information that a person needs to sign in on a new device.
struct Invitation: Hashable, Sendable {
    var account: Account
    /// The code to type on the device. Valid once, and not stored anywhere.
    var code: String
    /// Milliseconds since 1970.
    var expiresMilliseconds: Int64
}

extension PairingStorage {
    /// Makes a code that is valid for some seconds. Throws as ``addCode(_:now:by:)``.
    func invite(
        to account: Account, _ terms: CredentialTerms, seconds: Int64, now: Int64,
        by actor: AuditActor
    ) throws(StorageError) -> Invitation {
        let code = TypedCode.random(.signIn)
        let new = NewCode(
            hash: code.hash, account: account.id, expiresMilliseconds: now + seconds * 1_000,
            terms: terms)
        try addCode(new, now: now, by: actor)
        return Invitation(
            account: account, code: code.text, expiresMilliseconds: new.expiresMilliseconds)
    }
}
