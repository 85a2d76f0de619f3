// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// Watching, forcing and awaiting a sync.
extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Syncs now: when it returns, earlier writes are on the server, and the server's earlier
    /// changes are here.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notConfigured``,
    ///   ``UbiquityError/Code/notSignedIn``, ``UbiquityError/Code/unreachable``,
    ///   ``UbiquityError/Code/heldUp`` or ``UbiquityError/Code/refused`` at the first failed
    ///   attempt, and `CancellationError`. Writes stay and are sent later, except those of
    ///   ``UbiquityError/refusedKeys``, which the server has refused for good.
    public func synchronizeNow() async throws {
        try checkIdentifier()
        do { try await backing.driver.requestSync() } catch let error as UbiquityError {
            guard error.code == .unreachable, let holder = status.heldUpBy else { throw error }
            throw UbiquityError(
                .heldUp,
                "\(holder) holds this device's connection and does not answer; let it go on, or end it"
            )
        }
    }

    /// Returns when the first download of this account's values has completed, at once if it
    /// already has. From then on, a key without a value was never set, or was removed.
    ///
    /// It waits for as long as that takes, including for a sign-in.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notConfigured`` for an app without an
    ///   identifier, which has nothing to wait for, and `CancellationError`.
    public func initialSync() async throws {
        try checkIdentifier()
        backing.driver.initialSyncIsAwaited()
        for await status in statuses where status.isInitialSyncComplete { return }
        try Task.checkCancellation()
        throw UbiquityError.closed
    }

    /// The current sync status.
    public var status: UbiquityStatus { backing.status(of: engineStatus) }

    /// The current sync status, and each new status when it changes.
    ///
    /// A slow reader only gets the newest status. The sequence supports one reader, and ends when
    /// the reading task is cancelled.
    public var statuses: some AsyncSequence<UbiquityStatus, Never> & Sendable {
        let backing = backing
        return backing.poster.statuses.stream(newest: 1, first: engineStatus)
            .map { backing.status(of: $0) }
    }

    /// Errors that no call could report: refused writes, values that cannot be read, a broken file.
    /// Network errors are in ``status``.
    ///
    /// A slow reader gets the newest 64. An error that repeats without end is reported once a
    /// second. The sequence supports one reader.
    public var errors: some AsyncSequence<UbiquityError, Never> & Sendable {
        backing.poster.errors.stream(newest: NotificationPoster.errorsMax)
    }

    private func checkIdentifier() throws {
        guard backing.identifier != nil else {
            throw UbiquityError(.notConfigured, "this app has no store identifier")
        }
    }
}
