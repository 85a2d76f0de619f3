// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The histories of the stores. A part of the contract of ``ServerStorage``.
protocol HistoryStorage: Sendable {
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
}
