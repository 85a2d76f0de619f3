// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// Where a server keeps its accounts and stores.
///
/// The contract of every backend:
/// * Each call happens wholly or not at all, and is on stable storage when it returns.
/// * Calls may come from any thread and may block it; never call from a thread that must not.
/// * ``commit(_:rules:)``, ``addRunningTime(_:)``, ``forget(_:in:now:)`` and ``forgetFolded(_:in:)`` come from
///   one caller at a time, and only the
///   server makes them. Everything else may also be done by another process meanwhile; where the
///   server erases and scrubs, it is the same caller that does it.
/// * A read sees one moment: of a push all or nothing.
/// * What is done to accounts, devices and apps is in the audit log, or did not happen.
/// * Every call may throw ``StorageError/full`` or ``StorageError/failed(_:)``; the backend works
///   again when the cause is gone.
///
/// `now` is the server's milliseconds since 1970.
package protocol ServerStorage: Sendable {
    // MARK: Operator

    func operatorHash() throws(StorageError) -> SecretHash?
    func setOperatorHash(_ hash: SecretHash) throws(StorageError)

    // MARK: Accounts

    /// - Throws: ``StorageError/accountExists``, ``StorageError/tooMany(_:)``.
    func createAccount(
        _ account: Account, accountsMax: Int, by actor: AuditActor
    ) throws(StorageError)
    func account(named name: AccountName) throws(StorageError) -> Account?
    func account(_ id: AccountID) throws(StorageError) -> Account?
    /// In the order of their names' bytes.
    func accounts() throws(StorageError) -> [Account]
    /// Those whose names come after this one (nil: all), in that order, and no more than so many.
    func accounts(after name: AccountName?, max: Int) throws(StorageError) -> [Account]
    /// A name that it has already is no change.
    /// - Throws: ``StorageError/accountExists``, ``StorageError/noSuchAccount``.
    func rename(
        _ account: AccountID, to name: AccountName, now: Int64, by actor: AuditActor
    ) throws(StorageError)

    /// Removes the account with all that is its: devices, codes, identities, stores. A push to it
    /// that comes later is ``PushOutcome/noSuchAccount``. Takes as long as its devices are many; what its
    /// stores held is overwritten by ``eraseRest(for:)``, and the last traces by ``scrub(pacedAt:)``.
    /// - Returns: Whether there was such an account.
    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool

    /// Removes some of what the stores of erased accounts held, for about so long.
    /// - Returns: Whether there is more.
    func eraseRest(for milliseconds: Int64) throws(StorageError) -> Bool

    /// Makes sure that nothing is left in the files of what was erased, when the rest was. Takes as long as
    /// writing the whole database anew, during which nothing else is written. Does nothing if nothing
    /// was erased since.
    /// - Parameter uptime: Milliseconds of a clock that is never set: then only if the last time
    ///   is so long ago that this takes a hundredth of the time at most, and if the database is small, or
    ///   nobody has pushed for a while and it is not large. Nil: at once, the rest included.
    func scrub(pacedAt uptime: Int64?) throws(StorageError)

    // MARK: Signing in

    /// Also removes the codes that expired by `now`.
    func addCode(_ code: NewCode, now: Int64, by actor: AuditActor) throws(StorageError)

    /// Uses up the code and signs the device in on its terms; of two callers with one code, one
    /// succeeds.
    /// - Throws: ``StorageError/codeInvalid``, ``StorageError/tooMany(_:)``; the code stays usable
    ///   after the latter.
    func redeem(_ code: SecretHash, by device: NewDevice, now: Int64)
        throws(StorageError) -> (account: Account, device: Device)

    /// Signs the device in to the account of an identity. Where there is none yet, it is made:
    /// by the preferred name if nobody has that, else by the account's ID.
    /// - Throws: ``StorageError/tooMany(_:)``; then no account was made either.
    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device)

    func account(of identity: Identity) throws(StorageError) -> Account?
    /// In the order of their issuers and subjects.
    func identities(of account: AccountID) throws(StorageError) -> [Identity]

    // MARK: Devices

    /// Nil for an unknown or revoked credential. One that has expired is still known.
    func device(credential: SecretHash) throws(StorageError) -> Device?
    /// Those not revoked, the oldest first.
    func devices(of account: AccountID) throws(StorageError) -> [Device]
    /// - Returns: Whether there was such a device, not revoked.
    func rename(
        _ device: DeviceName, title: String, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool
    /// - Returns: Whether there was such a device, not revoked.
    func revoke(
        _ device: DeviceName, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool
    /// Which of these are signed in and not revoked.
    func live(among devices: Set<DeviceName>) throws(StorageError) -> Set<DeviceName>
    /// Nothing is noted of a device or store that does not exist.
    func note(_ sightings: Sightings) throws(StorageError)
    /// Removes devices whose credential had expired by then.
    /// - Returns: How many.
    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int

    // MARK: Apps

    /// The registered ones, in the order of their identifiers' bytes.
    func apps() throws(StorageError) -> [RegisteredApp]
    /// Does nothing for one that is registered already.
    /// - Returns: Whether it is new.
    /// - Throws: ``StorageError/tooMany(_:)``.
    func register(_ app: RegisteredApp, appsMax: Int, by actor: AuditActor) throws(StorageError)
        -> Bool
    /// - Returns: Whether it was registered.
    func removeApp(
        _ identifier: StoreIdentifier, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool

    // MARK: Audit

    /// The newest first.
    /// - Parameter number: Only those before this one; nil: all.
    func auditEntries(before number: Int64?, max: Int) throws(StorageError) -> [AuditEntry]
    /// Adds what nothing else here records: exports, failed sign-ins, a restore.
    func record(_ entries: [AuditEntry]) throws(StorageError)
    /// Records which limits are others than the last time, when they are kept for the next one. The first
    /// time, none is.
    func recordChanges(ofLimits limits: [String: String], now: Int64) throws(StorageError)
    /// The numbers of the entries that are too many, the least worth keeping first. May take as long as
    /// reading the whole log.
    func auditSurplus(by rule: AuditRule) throws(StorageError) -> [Int64]
    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError)

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

    /// Adds to the time that the server has run, which tells the age of deletions: no clock does, for
    /// it may jump.
    func addRunningTime(_ milliseconds: Int64) throws(StorageError)

    /// Whether the disk was full, and is not known to have room again. Then pushes that store more are refused,
    /// with ``StorageError/full``, and whatever takes away is done.
    var isFull: Bool { get }

    /// Looks whether a disk that was full has room again.
    /// - Returns: Whether it has, since now.
    func findRoom() -> Bool

    /// Leaves nothing of what was deleted or replaced in a log beside the file; some seconds after it was.
    func emptyLog(pacedAt uptime: Int64) throws(StorageError)

    /// The stores that remember deletions, or counts that were folded.
    func storesWithDeletions() throws(StorageError) -> [StoreKey]

    /// Forgets deletions of a store as far as the rule lets.
    /// - Returns: How many.
    func forget(
        _ rule: ForgettingRule, in store: StoreKey, now: Int64
    ) throws(StorageError) -> Int

    /// Forgets increments of counts that were folded, likewise.
    func forgetFolded(
        _ rule: ForgettingRule, in store: StoreKey
    ) throws(StorageError) -> Int

    /// Whether another process wrote since this was last asked.
    func hasForeignWrites() throws(StorageError) -> Bool

    /// Nothing else may be called afterwards.
    func close() throws(StorageError)
}
