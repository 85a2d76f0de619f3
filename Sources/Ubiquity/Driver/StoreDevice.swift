// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The device that a store is on, as the store sees it: who is signed in, its files, and the way to the
/// server.
package protocol StoreDevice: AnyObject, Sendable {
    /// Who is signed in.
    func current() throws -> DeviceState

    /// Calls when ``current()`` may have become another.
    /// - Returns: Ends it.
    func watch(changed: @escaping @Sendable () -> Void) -> @Sendable () -> Void

    /// Opens a store's file, or makes it.
    /// - Parameter folder: That of the account, see ``DeviceState/folder``.
    func openFile(_ name: String, folder: String) throws -> any StoreFile

    /// The process that leads a store's file now; nil: none, or it cannot be told.
    func leader(of name: String, folder: String) -> String?

    func link(to store: StoreIdentifier, of account: SignedInAccount, as device: DeviceID)
        -> any StoreLink
}

/// A store's file of one account on this device: what is in it, who is told when another process
/// wrote it, and the right to lead, which goes with the file.
package protocol StoreFile: AnyObject, Sendable {
    var storage: any LocalStorage { get }
    /// What was in it when it was opened.
    var content: DiskChanges { get }

    /// Calls when another process may have written, from now on.
    func watch(changed: @escaping @Sendable () -> Void) throws

    /// Calls when this process leads: at once if no other does.
    func whenLeading(_ body: @escaping @Sendable () -> Void)

    /// Ends the watch, closes the storage, and passes the lead on.
    func letGo()
}

/// The way to one store on one server with one credential, as its driver goes it: each call begins
/// something, and what comes of it is told later, on any thread.
package protocol StoreLink: Sendable {
    /// Opens the stream of changes.
    /// - Parameters:
    ///   - intake: What is more is not taken.
    ///   - receive: Is called with each event in its order.
    ///   - ended: Is called at last; nil: the server ended it.
    /// - Returns: Ends it from this side.
    func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void

    func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void)

    /// The changes since the cursor; nil: the whole store.
    func pull(
        since cursor: Cursor?, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void)
}
