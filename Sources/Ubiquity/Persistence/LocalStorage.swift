// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The disk of one store on one device, shared by the processes that open it.
///
/// Used by one thread at a time.
package protocol LocalStorage: AnyObject, Sendable {
    /// Loads everything, when a process starts.
    func load() throws -> DiskChanges

    /// The changes that other processes saved after that version; nil if there are none, which is
    /// cheap to find out.
    func changes(after version: Int64) throws -> DiskChanges?

    /// Writes the batch if the disk still has the expected version. A batch reported as
    /// ``SaveOutcome/saved(version:)`` survives `kill -9` and a power failure.
    func save(_ batch: SaveBatch) throws -> SaveOutcome

    /// The newest refused writes, the newest first.
    func refusedWrites() throws -> [RefusedWrite]

    /// Removes the refused writes.
    func forgetRefusedWrites() throws

    /// Prepares a faster next opening, if possible. Call it when nobody waits.
    func tidy()

    func close()
}
