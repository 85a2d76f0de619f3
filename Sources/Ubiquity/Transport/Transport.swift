// SPDX-License-Identifier: Apache-2.0

package import UbiquityCore

/// The way to one store on one server with one credential.
///
/// A transport decides nothing: it sends what it is given, once, and says what came back, where that is
/// within ``IntakeLimits``. Every failure is a ``LinkFailure``. Cancelling the task ends a request at
/// once.
package protocol Transport: Sendable {
    /// Opens the stream of changes and hands on each event in its order.
    ///
    /// Returns when the server ends the stream, and throws when it breaks or has been silent for
    /// longer than two of the server's keep-alive intervals.
    func listen(
        since cursor: Cursor?, within intake: IntakeLimits,
        receive: @escaping @Sendable (StreamMessage) -> Void
    ) async throws(LinkFailure)

    func push(_ push: Push, within intake: IntakeLimits) async throws(LinkFailure) -> PushAnswer

    /// The changes since the cursor; nil: the whole store. With the server's configuration, for who
    /// has no stream to bring it.
    func pull(
        since cursor: Cursor?, withConfig: Bool, within intake: IntakeLimits
    ) async throws(LinkFailure) -> ChangeSet
}

extension Transport {
    /// For who knows nothing of the store.
    package func pull(since cursor: Cursor?) async throws(LinkFailure) -> ChangeSet {
        try await pull(since: cursor, withConfig: false, within: IntakeLimits(nil))
    }
}
