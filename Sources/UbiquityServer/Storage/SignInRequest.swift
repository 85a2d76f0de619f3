// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import UbiquityCore

/// A device's stored request to be signed in by a device or the operator.
struct SignInRequest: Hashable, Sendable {
    /// The hash of the secret that only the asking device has.
    var secret: SecretHash
    /// The hash of the user code that it shows, a ``TypedCode``.
    var userCode: SecretHash
    /// The name that the device gave itself.
    var displayName: String
    /// The address from which it asked.
    var address: String
    /// The rights that it asks for.
    var terms = CredentialTerms()
    /// When the request expires, in milliseconds since 1970 by the server's clock.
    var expiresMilliseconds: Int64
}

extension SignInRequest {
    /// - Parameter row: The columns `hash`, `title` in bytes, `address`, `expires`, and
    ///   ``CredentialTerms/columns``.
    /// - Throws: ``StorageError/unreadable``.
    init(_ row: some ColumnReading, _ userCode: SecretHash) throws(StorageError) {
        self.init(
            secret: SecretHash(bytes: try row.bytes(0)), userCode: userCode,
            displayName: String(decoding: try row.bytes(1), as: UTF8.self),
            address: try row.text(2), terms: try CredentialTerms(row, from: 4),
            expiresMilliseconds: try row.time(3))
    }
}

/// A person's decision about a sign-in request.
enum SignInDecision: Hashable, Sendable {
    /// The device may sign in to this account on these terms.
    case approved(AccountID, CredentialTerms)
    /// Denied, by a device of this account; nil for the operator.
    case denied(AccountID?)

    /// The account of the device or of the operator's approval; nil for the operator's denial.
    var account: AccountID? {
        switch self {
        case .approved(let account, _): account
        case .denied(let account): account
        }
    }

    /// The event for the audit log.
    /// - Parameter address: Where the request came from.
    func event(about address: String, by actor: AuditActor) -> AuditEvent {
        switch self {
        case .approved(let account, _):
            AuditEvent(.signInApproved, of: account, by: actor, detail: address)
        case .denied(let account):
            AuditEvent(.signInDenied, of: account, by: actor, detail: address)
        }
    }
}

extension NewDevice {
    /// The device with the rights of these terms.
    /// - Throws: ``StorageError/codeInvalid`` if its credential would have expired.
    func on(_ terms: CredentialTerms, now: Int64) throws(StorageError) -> NewDevice {
        var device = self
        device.stores = terms.stores
        device.expiresMilliseconds = terms.expiry(signingInAt: now)
        guard device.expiresMilliseconds.map({ $0 > now }) ?? true else { throw .codeInvalid }
        return device
    }
}
