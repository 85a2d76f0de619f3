// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The operator, accounts with their devices, and the registered apps. A part of the
/// contract of ``ServerStorage``.
protocol AccountStorage: Sendable {
    func operatorHash() throws(StorageError) -> SecretHash?
    /// - Parameter now: The time for the audit log; nil for a new server's first credential, which is
    ///   not recorded.
    func setOperatorHash(_ hash: SecretHash, recordedAt now: Int64?) throws(StorageError)

    // MARK: Accounts

    /// - Throws: ``StorageError/accountExists``, ``StorageError/tooMany(_:)``.
    func createAccount(
        _ account: Account, accountsMax: Int, by actor: AuditActor
    ) throws(StorageError)
    func account(named name: AccountName) throws(StorageError) -> Account?
    func account(_ id: AccountID) throws(StorageError) -> Account?
    /// The accounts with names after this one (nil for all), in the byte order of their names, and
    /// at most `max`.
    /// - Parameter part: What the names contain, byte by byte; nil for any. Then it may take as long
    ///   as reading all names.
    func accounts(
        after name: AccountName?, containing part: String?, max: Int
    ) throws(StorageError) -> [Account]
    /// An unchanged name is not a change.
    /// - Throws: ``StorageError/accountExists``, ``StorageError/noSuchAccount``.
    func rename(
        _ account: AccountID, to name: AccountName, now: Int64, by actor: AuditActor
    ) throws(StorageError)

    /// Sets the account's own limits. Those it has already are not a change.
    /// - Throws: ``StorageError/noSuchAccount``.
    func limit(
        _ account: AccountID, to limits: AccountLimits, now: Int64, by actor: AuditActor
    ) throws(StorageError)

    /// Marks the account as sealed, see ``SealingState/take(_:proof:by:)``.
    /// - Returns: Whether that is a change.
    /// - Throws: ``StorageError/sealing(_:)``, ``StorageError/noSuchAccount``.
    func seal(
        _ account: AccountID, with mark: AccountSealing, proof: Bytes32?, now: Int64,
        by actor: AuditActor
    ) throws(StorageError) -> Bool

    /// Removes the mark, and what all stores have, as that of an erased account is. The devices stay.
    /// A device without the key announces that, see ``SealingState/reset(proof:at:by:)``.
    /// - Parameter run: The run of the server that the epochs name; nil for the storage's own.
    /// - Returns: Whether anything has changed.
    /// - Throws: ``StorageError/noSuchAccount``, ``StorageError/sealing(_:)``.
    func reset(
        _ account: AccountID, proof: Bytes32?, now: Int64, run: UInt64?, by actor: AuditActor
    ) throws(StorageError) -> Bool

    /// Withdraws an announced reset, because a device has shown its key.
    func withdrawReset(
        _ account: AccountID, proof: Bytes32, now: Int64, by actor: AuditActor
    ) throws(StorageError)

    /// The accounts whose announced reset is due.
    func accountsToReset(by now: Int64) throws(StorageError) -> [AccountID]

    /// Keeps a handover of the account for ``HandoverShelf/keptMilliseconds``, in place of those that
    /// ``HandoverShelf`` says.
    /// - Throws: ``StorageError/noSuchAccount``; ``StorageError/noSuchDevice`` if the device is not
    ///   signed in.
    func keep(
        _ box: [UInt8], as name: HandoverName, by device: DeviceReference, isConfined: Bool,
        now: Int64
    ) throws(StorageError)

    /// The box of a handover; nil if the account has none of that name, or no longer.
    func handover(
        _ name: HandoverName, of account: AccountID, now: Int64
    ) throws(StorageError) -> [UInt8]?

    /// Removes the account with everything that belongs to it: devices, codes, identities, stores.
    /// Later pushes to it give ``PushRefusal/noSuchAccount``. Takes time in proportion to the
    /// number of its devices. The content of its stores is overwritten by ``eraseRest(for:)``, and
    /// the last traces by ``scrub(pacedAt:)``.
    /// - Returns: Whether there was such an account.
    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool

    // MARK: Devices

    /// The rights of the devices with these credentials, in this order, each as of a moment of its own;
    /// nil for an unknown or revoked credential. An expired one is still known. A device that cannot be
    /// read fails alone.
    func rights(
        of credentials: [SecretHash]
    ) throws(StorageError) -> [Result<DeviceRights?, StorageError>]
    /// The devices that are not revoked, the oldest first.
    func devices(of account: AccountID) throws(StorageError) -> [Device]
    /// - Returns: Whether there was such a device, not revoked.
    func rename(
        _ device: DeviceReference, displayName: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool
    /// - Returns: The device and those that end with it, see ``PairingRule``; none if there was no such
    ///   device, not revoked.
    func revoke(
        _ device: DeviceReference, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Set<DeviceReference>

    // MARK: Apps

    /// The registered apps, in the byte order of their identifiers.
    func apps() throws(StorageError) -> [RegisteredApp]
    /// Does nothing if it is already registered, unless with another name. Without a name, it keeps
    /// the one that it has.
    /// - Returns: Whether it, or its name, is new.
    /// - Throws: ``StorageError/tooMany(_:)``.
    func register(_ app: RegisteredApp, appsMax: Int, by actor: AuditActor) throws(StorageError)
        -> Bool
    /// - Returns: Whether it was registered.
    func removeApp(
        _ identifier: StoreIdentifier, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool
}

extension AccountStorage {
    func accounts(after name: AccountName?, max: Int) throws(StorageError) -> [Account] {
        try accounts(after: name, containing: nil, max: max)
    }

    /// - Throws: ``StorageError/noSuchAccount``.
    func existingAccount(_ name: AccountName) throws(StorageError) -> Account {
        guard let account = try account(named: name) else { throw .noSuchAccount }
        return account
    }

    /// - Throws: ``StorageError/noSuchDevice``, also for a device that is revoked.
    func existingDevice(_ device: DeviceReference) throws(StorageError) -> Device {
        guard let found = try devices(of: device.account).first(where: { $0.reference == device })
        else { throw .noSuchDevice }
        return found
    }
}
