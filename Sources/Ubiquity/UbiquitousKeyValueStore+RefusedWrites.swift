// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// A write that the server refused after this device had accepted it, kept so that nothing is lost
/// silently.
///
/// This happens when several devices fill the store together, and when a key was deleted long ago.
/// `@unchecked Sendable` because the value consists of Foundation's immutable property-list
/// classes.
public struct UbiquityRefusedWrite: @unchecked Sendable {
    /// The key, which has its last confirmed value again.
    public var key: String
    /// The value that was to be stored, boxed as by ``UbiquitousKeyValueStore/object(forKey:)``;
    /// nil for a removal.
    public var value: Any?
    /// When the app wrote it.
    public var date: Date
    /// A sentence with the reason.
    public var reason: String
}

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// The writes that the server refused, the newest first; at most 1,024 are kept. Reads from
    /// disk.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public func refusedWrites() throws -> [UbiquityRefusedWrite] {
        try storageErrors { try backing.driver.refusedWrites() }.map { write in
            UbiquityRefusedWrite(
                key: write.record.key.string, value: write.record.content.value?.boxed,
                date: Date(milliseconds: write.record.stamp.timestamp.milliseconds),
                reason: write.refusal.detail)
        }
    }

    /// Removes the refused writes, once the app has dealt with them.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public func forgetRefusedWrites() throws {
        try storageErrors { try backing.driver.forgetRefusedWrites() }
    }
}
