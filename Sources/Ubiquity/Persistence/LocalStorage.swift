// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The disk of one store on one device, shared by the processes that open it.
///
/// Used from one thread at a time.
package protocol LocalStorage: AnyObject, Sendable {
    /// Everything, for a process that begins.
    func load() throws -> DiskChanges

    /// What other processes saved after that version; nil if nothing. Cheap when nothing changed.
    func changes(after version: Int64) throws -> DiskChanges?

    /// Writes the batch if the disk still has the version that it expects. When it returns
    /// ``SaveOutcome/saved(version:)`` the batch survives `kill -9` and the loss of power.
    func save(_ batch: SaveBatch) throws -> SaveOutcome

    /// The newest refused writes, the newest first.
    func refusedWrites() throws -> [RefusedWrite]

    /// Removes the refused writes.
    func forgetRefusedWrites() throws

    /// Does what makes the next opening faster, if there is something. For a moment in which nobody
    /// waits.
    func tidy()

    func close()
}
