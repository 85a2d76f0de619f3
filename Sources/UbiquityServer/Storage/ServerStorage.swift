// SPDX-License-Identifier: Apache-2.0

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
protocol ServerStorage: AccountStorage, PairingStorage, StoreStorage, HistoryStorage, AuditStorage,
    NodeStorage, MaintainedStorage
{
    /// No other call may follow.
    func close() throws(StorageError)
}
