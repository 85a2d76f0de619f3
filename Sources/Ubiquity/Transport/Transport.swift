// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The connection to one store on one server with one credential.
///
/// A transport decides nothing: it sends what it is given, once, and returns the response, if that
/// is within ``IntakeLimits``. Every failure is a ``LinkFailure``. Cancelling the task ends a
/// request at once.
package protocol Transport: Sendable {
    /// Opens the stream of changes and passes on each event in order.
    ///
    /// Returns when the server ends the stream. Throws when it breaks or has been silent for longer
    /// than two of the server's keep-alive intervals.
    func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void
    ) async throws(LinkFailure)

    func push(_ push: Push, within intake: IntakeLimits) async throws(LinkFailure) -> PushAnswer

    /// Gets the changes since the cursor, or the whole store for nil. Can include the server's
    /// configuration, for devices without a stream to bring it.
    func pull(
        since cursor: Cursor?, withConfig: Bool, within intake: IntakeLimits
    ) async throws(LinkFailure) -> ChangeSet
}

extension Transport {
    /// Pulls with the limits for a caller that does not know those of the store.
    package func pull(since cursor: Cursor?) async throws(LinkFailure) -> ChangeSet {
        try await pull(since: cursor, withConfig: false, within: IntakeLimits(nil))
    }
}
