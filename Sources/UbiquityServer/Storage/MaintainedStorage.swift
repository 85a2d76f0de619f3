// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The storage as a server's housekeeping uses it. A part of the contract of ``ServerStorage``.
protocol MaintainedStorage: Sendable {
    /// Ignores devices and stores that do not exist.
    func note(_ lastSeen: LastSeenUpdate) throws(StorageError)

    /// Removes codes and sign-in requests that expired by `now`.
    func removeCodes(expiredBy now: Int64) throws(StorageError)

    /// Removes devices whose credential had expired by then.
    /// - Returns: The number of removed devices.
    func removeDevices(expiredBy time: Int64, now: Int64) throws(StorageError) -> Int

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

    /// Has the database free the space of what was removed, so that it is overwritten some day. At most
    /// once an hour; may take minutes, during which everything goes on.
    /// - Returns: Whether there was something to do.
    func vacuum(pacedAt uptime: Int64) throws(StorageError) -> Bool

    /// Adds to the server's running time, which determines the age of tombstones. A clock would not
    /// do, because it may jump.
    func addRunningTime(_ milliseconds: Int64) throws(StorageError)

    /// The stores with tombstones or folded counts.
    func storesWithDeletions() throws(StorageError) -> [StoreReference]

    /// Drops tombstones of a store, and increments of its folded counts, as far as the rules permit.
    /// - Returns: The number of dropped tombstones.
    func compact(
        _ rule: CompactionRule, folded: CompactionRule, in store: StoreReference, now: Int64
    ) throws(StorageError) -> Int

    /// Whether the data is not where it was opened any more, and nothing can be committed. It may
    /// come back. A second old at most.
    var isMoved: Bool { get }

    /// Checks whether a full disk has space again.
    /// - Returns: Whether it was full until now and has space again.
    func findRoom() -> Bool

    /// Clears deleted and replaced data from a log beside the file, some seconds later.
    func emptyLog(pacedAt uptime: Int64) throws(StorageError)
}
