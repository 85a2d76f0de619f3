// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The exchange between the nodes of a shared storage. A part of the contract of ``ServerStorage``.
protocol NodeStorage: Sendable {
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
