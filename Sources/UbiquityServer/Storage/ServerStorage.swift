// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The storage of a server's accounts and stores.
///
/// Every backend must meet this contract:
/// * Each call takes effect entirely or not at all, and is on stable storage when it returns.
/// * Calls may come from any thread and may block it.
/// * ``commit(_:rules:)`` is called on up to ``commitLanes`` threads at once, each for accounts of
///   its own. ``addRunningTime(_:)``, ``compact(_:folded:in:now:)``, ``pruneHistory(_:of:)``,
///   erasing and scrubbing are called one at a time.
/// * If it ``isShared``, other nodes write too, and nothing that was read is true later. Otherwise
///   no other process writes.
/// * After a revocation or an erasure has returned, no push of that device or account is committed,
///   on any node.
/// * A read sees one moment: all of a push or nothing.
/// * An action on accounts, devices or apps is in the audit log, or did not happen.
/// * An action of a device is done only while the device is signed in, whatever its caller knew
///   before: otherwise ``StorageError/noSuchDevice`` is thrown.
/// * Every call may throw ``StorageError/full`` or ``StorageError/failed(_:)``. The backend works
///   again when the cause is gone.
///
/// `now` is the server's milliseconds since 1970.
protocol ServerStorage: Sendable {
    // MARK: Operator

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

    /// Removes the account with everything that belongs to it: devices, codes, identities, stores.
    /// Later pushes to it give ``PushRefusal/noSuchAccount``. Takes time in proportion to the
    /// number of its devices. The content of its stores is overwritten by ``eraseRest(for:)``, and
    /// the last traces by ``scrub(pacedAt:)``.
    /// - Returns: Whether there was such an account.
    func erase(
        _ account: AccountID, now: Int64, by actor: AuditActor
    ) throws(StorageError) -> Bool

    /// Removes some of the content of erased accounts' stores, for about this long.
    /// - Returns: Whether more is left.
    func eraseRest(for milliseconds: Int64) throws(StorageError) -> Bool

    /// Makes sure that no erased data is left in the files, once ``eraseRest(for:)`` has removed
    /// everything. Takes as long as rewriting the whole database, during which nothing else is
    /// written. Does nothing if nothing was erased since.
    /// - Parameter uptime: Milliseconds of a monotonic clock, to run only if the last time is long
    ///   enough ago that this takes at most a hundredth of the time, and if the database is small,
    ///   or is not large and nobody has pushed for a while. Nil to run at once, and to remove the
    ///   rest first.
    func scrub(pacedAt uptime: Int64?) throws(StorageError)

    // MARK: Signing in

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

    /// Removes codes and sign-in requests that expired by `now`.
    func removeCodes(expiredBy now: Int64) throws(StorageError)

    /// Signs the device in to the account of an identity. If there is none yet, it is created with
    /// the preferred name, or with the account's ID if that name is taken.
    /// - Throws: ``StorageError/tooMany(_:)``; no account was created then.
    func signIn(
        _ identity: Identity, preferredName: AccountName?, accountsMax: Int,
        by device: NewDevice, now: Int64
    ) throws(StorageError) -> (account: Account, device: Device)

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
    /// Reads the part of a store, or of one of its keys, that each device of the account has.
    func holdings(of store: StoreReference, key: Key?) throws(StorageError) -> StoreHoldings
    /// Ignores devices and stores that do not exist.
    func note(_ lastSeen: LastSeenUpdate) throws(StorageError)
    /// Removes devices whose credential had expired by then.
    /// - Returns: The number of removed devices.
    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int

    // MARK: Apps

    /// The registered apps, in the byte order of their identifiers.
    func apps() throws(StorageError) -> [RegisteredApp]
    /// Does nothing if it is already registered.
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
    /// - Parameter number: Selects entries before this one; nil for all.
    func auditEntries(
        before number: Int64?, _ filter: AuditFilter, max: Int
    ) throws(StorageError) -> [AuditEntry]
    /// Adds entries that no other call records: exports, failed sign-ins, a restore.
    func record(_ entries: [AuditEntry]) throws(StorageError)
    /// Records which limits differ from those of the last call, and stores them for the next one.
    /// The first call records none.
    func recordChanges(ofLimits limits: [String: String], now: Int64) throws(StorageError)
    /// The numbers of the entries in excess of the maximum, the least valuable first. May take as
    /// long as reading the whole log.
    func auditSurplus(by rule: AuditRule) throws(StorageError) -> [Int64]
    func removeAuditEntries(_ numbers: [Int64]) throws(StorageError)

    // MARK: Nodes

    /// Whether other nodes may write too. Commits and revocations of each node are then announced
    /// to all others.
    var isShared: Bool { get }

    /// Calls back from any thread with what other nodes did, or may have done. Never does if the
    /// storage is not shared. Call once.
    func observe(_ observer: @escaping @Sendable (StorageNews) -> Void)

    /// Returns the given devices that are signed in and not revoked.
    func signedIn(
        among devices: Set<DeviceReference>
    ) throws(StorageError) -> Set<DeviceReference>

    /// Takes or renews the right to do the chores of all nodes, such as compaction. Another node
    /// gets it when it is not renewed for this long; 0 gives it up. It only saves work: each chore is
    /// right on any node at any time.
    /// - Returns: Whether this node has it.
    func lease(for milliseconds: Int64) throws(StorageError) -> Bool

    /// The storage's own clock, in milliseconds since 1970; nil if it has none.
    func clock() throws(StorageError) -> Int64?

    /// The size of a shared storage, and the nodes that work on it; nil if it is not shared.
    func sharedFigures() throws(StorageError) -> SharedFigures?

    /// The name of the storage's history, which changes when it restarts, when a standby takes its
    /// place, and when it is restored; nil if it cannot do so while it is open.
    func history() throws(StorageError) -> UInt64?

    // MARK: Stores

    /// In the byte order of their identifiers.
    func stores(of account: AccountID) throws(StorageError) -> [StoreSummary]

    /// The changes after a position, tombstones included; for nil, everything in the store without
    /// tombstones. A store without pushes is empty, and is not created.
    func read(_ store: StoreReference, since: Position?) throws(StorageError) -> StoreRead

    /// The answer to ``read(_:since:)`` if it is known from memory that nothing has changed; nil if
    /// that, or the position, must be looked up. Does not block.
    func unchanged(_ store: StoreReference, since position: Position) -> StoreRead?

    /// The newest positions; nothing of a store that does not exist.
    func positions(
        of stores: [StoreReference]
    ) throws(StorageError) -> [StoreReference: Position]

    /// The number of threads that may commit at once.
    var commitLanes: Int { get }

    /// The number of threads that may usefully read at once.
    var readLanes: Int { get }

    /// Decides the pushes in order and stores their changes in one commit.
    /// - Returns: One result for each push, in order.
    func commit(
        _ pushes: [PendingPush], rules: CommitRules
    ) throws(StorageError) -> [Result<CommittedPush, PushRefusal>]

    /// Adds to the server's running time, which determines the age of tombstones. A clock would not
    /// do, because it may jump.
    func addRunningTime(_ milliseconds: Int64) throws(StorageError)

    /// Whether the disk was full, and is not known to have space again. Pushes that store more are
    /// then refused with ``StorageError/full``; removals are done.
    var isFull: Bool { get }

    /// Whether the data is not where it was opened any more, and nothing can be committed. It may
    /// come back. A second old at most.
    var isMoved: Bool { get }

    /// Checks whether a full disk has space again.
    /// - Returns: Whether it was full until now and has space again.
    func findRoom() -> Bool

    /// Clears deleted and replaced data from a log beside the file, some seconds later.
    func emptyLog(pacedAt uptime: Int64) throws(StorageError)

    /// The stores with tombstones or folded counts.
    func storesWithDeletions() throws(StorageError) -> [StoreReference]

    /// Drops tombstones of a store, and increments of its folded counts, as far as the rules permit.
    /// - Returns: The number of dropped tombstones.
    func compact(
        _ rule: CompactionRule, folded: CompactionRule, in store: StoreReference, now: Int64
    ) throws(StorageError) -> Int

    // MARK: History

    /// Reads chosen versions of a store's entries, and current records, at one moment.
    /// - Parameters:
    ///   - key: The key to which, with its parts, the choice is limited; nil for the whole store.
    ///   - currentOnly: Whether to choose among the current records alone.
    ///   - choose: Returns the places of the chosen lines. The state is that of a store without
    ///     pushes if there is none. May be called again if the storage repeats the transaction.
    /// - Returns: The chosen versions, in the order of the choice.
    func versions(
        of store: StoreReference, key: Key?, currentOnly: Bool,
        _ choose: (StoreState, [HistoryRule.Line]) -> [Int]
    ) throws(StorageError) -> [StoredVersion]

    /// The stores whose histories are to be pruned without a push, see ``HistoryState/isDue(within:now:)``,
    /// by the rule with the limits of their accounts.
    func storesToPrune(_ rule: HistoryRule) throws(StorageError) -> [StoreReference]

    /// Removes the versions of a store that are beyond the limits, or its account's own.
    /// - Returns: The number of removed rows.
    func pruneHistory(_ rule: HistoryRule, of store: StoreReference) throws(StorageError) -> Int

    /// No other call may follow.
    func close() throws(StorageError)
}

/// A storage of one process alone.
extension ServerStorage {
    var isShared: Bool { false }
    var isMoved: Bool { false }
    var commitLanes: Int { 1 }
    var readLanes: Int { 2 }
    func observe(_ observer: @escaping @Sendable (StorageNews) -> Void) {}
    func lease(for milliseconds: Int64) throws(StorageError) -> Bool { true }
    func clock() throws(StorageError) -> Int64? { nil }
    func history() throws(StorageError) -> UInt64? { nil }
    func sharedFigures() throws(StorageError) -> SharedFigures? { nil }
}

extension ServerStorage {
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

/// A node's figures of a storage that it shares with others.
struct SharedFigures: Hashable, Sendable {
    var bytes: Int
    /// The nodes connected to it, this one included.
    var nodes: Int
}

/// News of the other nodes, or of this one.
enum StorageNews: Hashable, Sendable {
    /// A store has reached this position. A hint, which may be wrong.
    case committed(StoreReference, Position)
    case revoked(DeviceReference)
    /// The account was erased, or has other limits.
    case accountChanged(AccountID)
    case appsChanged
    /// News may have been missed.
    case anything
    /// The storage has lost what it had confirmed, so nobody may work with it. The reason is for the
    /// operator's log.
    case historyWentBack(String)
}

/// The reason a storage operation failed. Nothing of it was done.
package enum StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    case accountExists
    case noSuchAccount
    case noSuchDevice
    case noSuchApp
    /// Wrong, used or expired; the caller is not told which.
    case codeInvalid
    /// No sign-in request with this user code waits for a decision.
    case noSuchRequest
    /// Nobody has decided on the sign-in request yet.
    case signInPending
    case signInDenied
    case tooMany(String)
    /// The same for things that soon expire.
    case tooManyWaiting(String)
    /// The disk is full. Space may become available again.
    case full
    /// Something in the storage was not written by a server, or is damaged.
    case unreadable
    /// The reason for the operator's log, without keys, values or secrets.
    case failed(String)

    package var description: String {
        switch self {
        case .accountExists: "an account with this name already exists"
        case .noSuchAccount: "there is no account with this name"
        case .noSuchDevice: "the account has no such device"
        case .noSuchApp: "this app is not registered"
        case .codeInvalid: "the code is wrong, has already been used, or has expired"
        case .noSuchRequest: "no device is waiting with this code"
        case .signInPending: "the sign-in was not approved yet"
        case .signInDenied: "the sign-in was denied"
        case .tooMany(let things), .tooManyWaiting(let things): "there are too many \(things)"
        case .full: "the disk is full"
        case .unreadable: "a record in the database cannot be read"
        case .failed(let reason): "the storage failed: \(reason)"
        }
    }
}
