// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The stores and their records. A part of the contract of ``ServerStorage``.
protocol StoreStorage: Sendable {
    /// In the byte order of their identifiers.
    func stores(of account: AccountID) throws(StorageError) -> [StoreSummary]

    /// The changes after a position, tombstones included; for nil, everything in the store without
    /// tombstones. A store without pushes is empty, and is not created.
    /// - Parameter generation: Of the key with which it is to be readable; nil for any.
    func read(
        _ store: StoreReference, since: Position?, sealedWith generation: UInt32?
    ) throws(StorageError) -> StoreRead

    /// The answer to ``read(_:since:sealedWith:)`` if it is known from memory that nothing has changed;
    /// nil if that, or the position, must be looked up. Does not block.
    func unchanged(
        _ store: StoreReference, since position: Position, sealedWith generation: UInt32?
    ) -> StoreRead?

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

    /// Replaces a store by one that is sealed with the account's key. What it had is removed as that of
    /// an erased account is.
    /// - Parameter rights: As those of a push.
    /// - Returns: The store's new position.
    func replace(
        _ store: StoreReference, by whole: WholeStore, rights: DeviceRights?, rules: CommitRules
    ) throws(StorageError) -> Result<Position, PushRefusal>

    /// Whether the disk was full, and is not known to have space again. Pushes that store more are
    /// then refused with ``StorageError/full``; removals are done.
    var isFull: Bool { get }

    /// Reads the part of a store, or of one of its keys, that each device of the account has.
    func holdings(of store: StoreReference, key: Key?) throws(StorageError) -> StoreHoldings
}

extension StoreStorage {
    func read(_ store: StoreReference, since: Position?) throws(StorageError) -> StoreRead {
        try read(store, since: since, sealedWith: nil)
    }
}
