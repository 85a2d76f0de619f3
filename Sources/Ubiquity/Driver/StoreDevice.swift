// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The device of a store, from the store's point of view: the sign-in, the files, and the link to
/// the server.
package protocol StoreDevice: AnyObject, Sendable {
    /// The current sign-in.
    func current() throws -> DeviceState

    /// Calls `changed` when ``current()`` may have changed.
    /// - Returns: A closure that ends the watch.
    func watch(changed: @escaping @Sendable () -> Void) -> @Sendable () -> Void

    /// Opens a store's file, creating it if needed.
    /// - Parameter folder: The account's folder, see ``DeviceState/folder``.
    func openFile(_ name: String, folder: String) throws -> any LocalStorage

    /// The process that currently leads a store's file; nil if there is none or it is unknown.
    func leader(of name: String, folder: String) -> String?

    func link(to store: StoreIdentifier, of account: SignedInAccount, as device: DeviceID)
        -> any StoreLink
}

/// The link to one store on one server with one credential. Each call begins an operation whose
/// result is reported later, on any thread.
package protocol StoreLink: Sendable {
    /// Opens the stream of changes.
    /// - Parameters:
    ///   - intake: The limits beyond which the server's data is rejected.
    ///   - receive: Called with each event, in order.
    ///   - ended: Called last; nil means that the server ended the stream.
    /// - Returns: A closure that ends the stream from this side.
    func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void

    func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void)

    /// Gets the changes since the cursor, or the whole store for nil.
    func pull(
        since cursor: Cursor?, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void)
}
