// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// A write that the server refused after this device had taken it, kept so that nothing is lost in
/// silence.
///
/// It happens when devices fill the store only together, and when a key was deleted long ago.
/// `@unchecked Sendable`: the value is of Foundation's immutable property-list classes.
public struct UbiquityRefusedWrite: @unchecked Sendable {
    /// The key, which has the last agreed value again.
    public var key: String
    /// What was to be stored, boxed as ``UbiquitousKeyValueStore/object(forKey:)`` boxes; nil: the
    /// key was to be removed.
    public var value: Any?
    /// When the app wrote it.
    public var date: Date
    /// Why it was refused, one sentence.
    public var reason: String
}

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// The writes that the server refused, the newest first; at most 1,024 are kept. Read from disk.
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

    /// Forgets the refused writes, for an app that has dealt with them.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public func forgetRefusedWrites() throws {
        try storageErrors { try backing.driver.forgetRefusedWrites() }
    }
}
