// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// To see a sync, to force one, and to wait for it.
extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Exchanges with the server, now: when it returns, what was written before is on the server,
    /// and what the server had is here.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notConfigured``,
    ///   ``UbiquityError/Code/notSignedIn``, ``UbiquityError/Code/unreachable``,
    ///   ``UbiquityError/Code/heldUp`` or
    ///   ``UbiquityError/Code/refused`` at the first attempt that fails, and `CancellationError`. What
    ///   was written stays and is sent later, but for ``UbiquityError/refusedKeys``: what was written
    ///   there before, the server has refused for good.
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

    /// Returns when the first download of this account's values has completed: at once, if it has
    /// before. From then on a key without a value was never set, or was removed.
    ///
    /// It waits for as long as that takes, for a sign-in too.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notConfigured`` for an app without an
    ///   identifier, which has nothing to wait for, and `CancellationError`.
    public func initialSync() async throws {
        try checkIdentifier()
        backing.driver.initialSyncIsAwaited()
        for await status in statuses where status.isInitialSyncComplete { return }
        try Task.checkCancellation()
        throw UbiquityError.closed
    }

    /// How the sync stands now.
    public var status: UbiquityStatus { backing.status(of: engineStatus) }

    /// How the sync stands, now and whenever that changes.
    ///
    /// A slow reader gets the newest status only. The sequence is for one reader, and ends when the
    /// reading task is cancelled.
    public var statuses: some AsyncSequence<UbiquityStatus, Never> & Sendable {
        let backing = backing
        return backing.audience.statuses.stream(newest: 1, first: engineStatus)
            .map { backing.status(of: $0) }
    }

    /// What went wrong where the app's call could not say so: refused writes, values that cannot be
    /// read, a broken file. Errors of the network are in ``status``.
    ///
    /// A slow reader gets the newest 64. Where the same goes wrong without end, it is told once a
    /// second. The sequence is for one reader.
    public var errors: some AsyncSequence<UbiquityError, Never> & Sendable {
        backing.audience.errors.stream(newest: Audience.errorsMax)
    }

    private func checkIdentifier() throws {
        guard backing.identifier != nil else {
            throw UbiquityError(.notConfigured, "this app has no store identifier")
        }
    }
}
