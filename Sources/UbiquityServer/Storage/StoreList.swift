// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The stored form of the stores to which a device is confined: the sorted identifiers, one per line.
enum StoreList {
    static func text(_ stores: Set<StoreIdentifier>) -> String {
        stores.map(\.string).sorted().joined(separator: "\n")
    }

    /// Returns nil if the device is not confined.
    /// - Throws: ``StorageError/unreadable``.
    static func set(_ text: String?) throws(StorageError) -> Set<StoreIdentifier>? {
        guard let text else { return nil }
        do {
            return Set(try text.split(separator: "\n").map { try StoreIdentifier(String($0)) })
        } catch { throw .unreadable }
    }
}
