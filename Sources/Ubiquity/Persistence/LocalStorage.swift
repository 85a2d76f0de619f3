// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The file of one store on one device, shared by the processes that open it: its content, other
/// processes' writes, and the right to lead, which belongs to the file.
///
/// Used by one thread at a time. ``close()`` may be called on any thread.
package protocol LocalStorage: AnyObject, Sendable {
    /// Loads everything, when a process starts.
    func load() throws -> DiskChanges

    /// The changes that other processes saved after that version; nil if there are none, which is
    /// cheap to find out.
    func changes(after version: Int64) throws -> DiskChanges?

    /// Writes the batch if the disk still has the expected version. A batch reported as
    /// ``SaveOutcome/saved(version:)`` survives `kill -9` and a power failure.
    func save(_ batch: SaveBatch) throws -> SaveOutcome

    /// Tells other processes of what was saved, at the latest when the next batch is saved or the
    /// file is closed. Call it when the steps that follow a save have begun: this process is woken
    /// as well.
    func announce()

    /// The newest refused writes, the newest first.
    func refusedWrites() throws -> [RefusedWrite]

    /// Removes the refused writes.
    func forgetRefusedWrites() throws

    /// Prepares a faster next opening, if possible. Call it when nobody waits.
    func tidy()

    /// Calls `changed` when another process may have written, from now on.
    func watch(changed: @escaping @Sendable () -> Void) throws

    /// Calls `body` when this process leads, at once if no other process does.
    func whenLeading(_ body: @escaping @Sendable () -> Void)

    /// Ends the watch, closes the file, and passes the leadership on.
    func close()
}

extension LocalStorage {
    /// Nothing to do for a storage that tells others while it saves.
    package func announce() {}
}

/// The reason a store's file could not be read or written. Nothing was changed.
package struct LocalStorageError: Error, Hashable, Sendable {
    package enum Reason: CaseIterable, Hashable, Sendable {
        /// The file is a database, but its content is not valid.
        case damaged
        /// The file is not a database, or belongs to another program.
        case foreign
        /// A later version of this library wrote the file, or one from before the first release.
        case newer
        /// The file or its folder cannot be read or written.
        case notWritable
        case diskFull
        /// Other processes held the file for longer than ten seconds.
        case busy
        /// The file is not at its path any more.
        case moved
        /// A failure of the disk, or any other failure.
        case failed
    }

    package var reason: Reason
    package var path: String
    /// The message of SQLite or the system.
    package var cause: String

    package init(_ reason: Reason, path: String, cause: String) {
        self.reason = reason
        self.path = path
        self.cause = cause
    }
}

extension LocalStorageError: CustomStringConvertible {
    package var description: String {
        switch reason {
        case .damaged:
            "The file \(path) is damaged (\(cause)). Nothing was moved or changed. Move the file, "
                + "and all files whose names begin with its name, elsewhere; the store then starts "
                + "over with the server's data."
        case .foreign:
            "The file \(path) is not a store of this library (\(cause)). Nothing was moved or "
                + "changed. Move it elsewhere, or choose another folder."
        case .newer:
            "The file \(path) was written by a newer version of this library, or by one from "
                + "before the first release (\(cause)). Nothing was moved or changed. Update the "
                + "program; or move the file, and all files whose names begin with its name, "
                + "elsewhere, and the store starts over with the server's data."
        case .notWritable:
            "The file \(path) cannot be opened for reading and writing (\(cause)). Make the file "
                + "and its folder readable and writable for the user that runs the program."
        case .diskFull:
            "There is no room on the disk for the file \(path) (\(cause)). The store continues in "
                + "memory; free some space."
        case .busy:
            "Another process has locked the file \(path) for ten seconds (\(cause)). End that "
                + "process, or try again."
        case .moved:
            "The file \(path) was removed, moved or replaced while the store was open (\(cause)). Put "
                + "it back, or start the program again."
        case .failed:
            "The file \(path) could not be read or written (\(cause)). Try again, and check the disk "
                + "if that does not help."
        }
    }
}
