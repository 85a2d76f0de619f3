// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Where a server keeps its accounts and stores.
///
/// The contract of every backend:
/// * Each call happens wholly or not at all, and is on stable storage when it returns.
/// * Calls may come from any thread and may block it; never call from a thread that must not.
/// * ``commit(_:rules:)`` and ``forget(_:at:)`` come from one caller at a time, and only the
///   server makes them. Everything else may also be done by another process meanwhile.
/// * A read sees one moment: of a push all or nothing.
/// * Every call may throw ``StorageError/full`` or ``StorageError/failed(_:)``; the backend works
///   again when the cause is gone.
///
/// `now` is the server's milliseconds since 1970.
package protocol ServerStorage: Sendable {
    // MARK: Operator

    func operatorHash() throws(StorageError) -> SecretHash?
    func setOperatorHash(_ hash: SecretHash) throws(StorageError)

    // MARK: Accounts and devices

    /// - Throws: ``StorageError/accountExists``, ``StorageError/tooMany(_:)``.
    func createAccount(_ account: Account, accountsMax: Int) throws(StorageError)
    func account(named name: AccountName) throws(StorageError) -> Account?
    func account(_ id: AccountID) throws(StorageError) -> Account?
    /// In the order of their names' bytes.
    func accounts() throws(StorageError) -> [Account]

    /// Also removes the codes that expired by `now`.
    func addCode(
        _ hash: SecretHash, for account: AccountID, expires: Int64, now: Int64
    ) throws(StorageError)

    /// Uses up the code and signs the device in; of two callers with one code, one succeeds.
    /// - Throws: ``StorageError/codeInvalid``, ``StorageError/tooMany(_:)``; the code stays usable
    ///   after the latter.
    func redeem(_ code: SecretHash, by device: NewDevice, now: Int64)
        throws(StorageError) -> (account: Account, device: Device)

    /// Nil for an unknown or revoked credential.
    func device(credential: SecretHash) throws(StorageError) -> Device?
    /// Those not revoked, the oldest first.
    func devices(of account: AccountID) throws(StorageError) -> [Device]
    /// - Returns: Whether there was such a device, not revoked.
    func revoke(_ device: DeviceName, now: Int64) throws(StorageError) -> Bool
    /// Which of these are signed in and not revoked.
    func live(among devices: Set<DeviceName>) throws(StorageError) -> Set<DeviceName>
    /// Nothing is noted of a store that does not exist.
    func note(_ sightings: Sightings) throws(StorageError)

    // MARK: Stores

    /// In the order of their identifiers' bytes.
    func stores(of account: AccountID) throws(StorageError) -> [StoreSummary]

    /// What changed after a position, deletions included; nil: all that the store holds, without
    /// deletions. A store that nobody pushed to is empty, and stays uncreated.
    func read(_ store: StoreKey, since: Position?) throws(StorageError) -> StoreRead

    /// Decides the pushes in their order and stores what they change, at once.
    /// - Returns: One outcome a push, in their order.
    func commit(
        _ pushes: [WaitingPush], rules: CommitRules
    ) throws(StorageError) -> [PushOutcome]

    /// Forgets deletions as far as the rule lets; of every store.
    /// - Returns: How many.
    func forget(_ rule: ForgettingRule, now: Int64) throws(StorageError) -> Int

    /// Whether another process wrote since this was last asked.
    func hasForeignWrites() throws(StorageError) -> Bool

    /// Nothing else may be called afterwards.
    func close() throws(StorageError)
}
