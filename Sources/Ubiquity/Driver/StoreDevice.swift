// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The device of a store, from the store's point of view: the sign-in, the files, and the link to
/// the server.
package protocol StoreDevice: AnyObject, Sendable {
    /// The current sign-in.
    func current() throws -> DeviceState

    /// Keeps that the account of this identifier is sealed, for all stores of the device.
    /// - Returns: The sign-in after that.
    func noteSealed(_ account: ExactString) throws -> DeviceState

    /// Calls `changed` when ``current()`` may have changed.
    /// - Returns: A closure that ends the watch.
    func watch(changed: @escaping @Sendable () -> Void) -> @Sendable () -> Void

    /// Opens a store's file, creating it if needed.
    /// - Parameter folder: The account's folder, see ``DeviceState/folder``.
    func openFile(_ name: String, folder: String) throws -> any LocalStorage

    /// The process that currently leads a store's file; nil if there is none or it is unknown.
    func leader(of name: String, folder: String) -> String?

    func link(
        to store: StoreIdentifier, of account: SignedInAccount, generation: UInt32
    ) -> any StoreLink
}

/// The link to one store on one server with one credential. Each call begins an operation whose
/// result is reported later, on any thread.
package protocol StoreLink: Sendable {
    /// Opens the stream of changes.
    /// - Parameters:
    ///   - isSaved: Whether the device has saved everything up to the cursor, which the server is
    ///     told.
    ///   - intake: The limits beyond which the server's data is rejected.
    ///   - receive: Called with each event, in order.
    ///   - ended: Called last; nil means that the server ended the stream.
    /// - Returns: A closure that ends the stream from this side.
    func listen(
        since cursor: Cursor?, isSaved: Bool, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void,
        ended: @escaping @Sendable (LinkFailure?) -> Void
    ) -> @Sendable () -> Void

    func push(
        _ push: Push, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<PushAnswer, LinkFailure>) -> Void)

    /// Gets the changes since the cursor, or the whole store for nil.
    func pull(
        since cursor: Cursor?, isSaved: Bool, withConfig: Bool, within intake: IntakeLimits,
        answered: @escaping @Sendable (Result<ChangeSet, LinkFailure>) -> Void)

    /// Asks which devices have the store's changes, or those of one key.
    /// - Parameter saved: The cursor up to which this device has saved the store.
    func deliveries(
        of key: Key?, saved: Cursor?,
        answered: @escaping @Sendable (Result<[DeviceDelivery], LinkFailure>) -> Void)

    /// Gets versions of the store's entries, those that came last first.
    /// - Parameters:
    ///   - key: The key whose versions, and those of its parts, are listed; nil for all keys.
    ///   - place: Where the page begins, from the page before; nil for the first one.
    ///   - max: The maximum number of versions; the server may send fewer.
    func history(
        of key: Key?, from place: String?, max: Int,
        answered: @escaping @Sendable (Result<HistoryPage, LinkFailure>) -> Void)

    /// Gets the store as it was.
    func snapshot(
        at time: HistoryRule.Time,
        answered: @escaping @Sendable (Result<StoreSnapshot, LinkFailure>) -> Void)

    /// Gets the names of the account's devices.
    func deviceNames(
        answered: @escaping @Sendable (Result<[DeviceID: String], LinkFailure>) -> Void)
}
