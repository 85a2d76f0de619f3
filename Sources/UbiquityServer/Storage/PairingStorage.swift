// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// How devices sign in. A part of the contract of ``ServerStorage``.
protocol PairingStorage: Sendable {
    /// A code that a device made ends with it: when the device is revoked or removed, so is the
    /// code. Of the device's expired codes, ``PairingRule/codesPerDeviceMax`` are kept.
    /// - Throws: ``StorageError/noSuchAccount``; for a code that a device makes,
    ///   ``StorageError/noSuchDevice`` if it is not signed in, and
    ///   ``StorageError/tooManyWaiting(_:)``.
    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError)

    /// Uses up the code and signs the device in on its terms. Of two callers with one code, one
    /// succeeds.
    /// - Parameter name: For a code of ``addFirstCode(_:now:)``, the name of the account that it
    ///   makes, and nil for any other code. Of several such codes, only one makes an account.
    /// - Throws: ``StorageError/codeInvalid``, ``StorageError/tooMany(_:)``; after the latter the
    ///   code stays valid.
    func redeem(_ code: SecretHash, by device: NewDevice, naming name: AccountName?, now: Int64)
        throws(StorageError) -> (account: Account, device: Device)

    /// Keeps a code for an account that does not exist yet, unless there is any account. Further
    /// codes than ``PairingRule/firstCodesMax`` replace the earlier ones.
    /// - Returns: Whether there was no account.
    func addFirstCode(_ code: NewCode, now: Int64) throws(StorageError) -> Bool

    /// Keeps a sign-in request until it expires. Of those that have expired by `now`, which may be
    /// wrong, ``PairingRule/requestsMax`` are kept.
    /// - Throws: ``StorageError/tooManyWaiting(_:)`` as ``PairingRule`` decides.
    func addRequest(_ request: SignInRequest, now: Int64) throws(StorageError)

    /// The request with this user code; nil if there is none, or it has expired, or somebody has
    /// decided on it.
    func request(userCode: SecretHash, now: Int64) throws(StorageError) -> SignInRequest?

    /// Decides on a request that nobody has decided on. Of two callers, one succeeds. An approval
    /// by a device ends with it, like a code.
    /// - Throws: ``StorageError/noSuchRequest``; for an approval, ``StorageError/noSuchAccount`` as
    ///   for a code.
    func decide(
        _ userCode: SecretHash, _ decision: SignInDecision, now: Int64, by actor: AuditActor
    ) throws(StorageError)

    /// Uses up an approved request, and signs the device in on the approved terms, with the name
    /// that was approved.
    /// - Parameter secret: The hash of the request's secret.
    /// - Throws: ``StorageError/signInPending``, ``StorageError/signInDenied``, and as for a code.
    func redeem(
        request secret: SecretHash, by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device)

    /// Signs the device in to the account of an identity. If there is none yet, it is created with
    /// the preferred name, or with the account's ID if that name is taken.
    /// - Throws: ``StorageError/tooMany(_:)``; no account was created then.
    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device)
}
