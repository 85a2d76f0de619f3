// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// The members of ``UbiquitousKeyValueStore`` that Apple's class does not have.
///
/// Members declared for this protocol rather than the class leave their names to apps. If the class
/// had a `changes` or a `removeAll()`, a subclass in an app, such as a test double, could not have
/// its own.
public protocol UbiquityAdditions {}

extension UbiquitousKeyValueStore: UbiquityAdditions {}

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Stores an integer like ``UbiquitousKeyValueStore/set(_:forKey:)-(Any?,_)``, which a subclass
    /// may override.
    ///
    /// Apple's setters take an `Int64`, a `Double` or anything. For `store.set(5, forKey: key)` the
    /// compiler should choose the last, but Swift 6.3 calls it ambiguous unless the key is a
    /// literal too. A setter of the literal's own type resolves this.
    public func set(_ value: Int, forKey aKey: String) {
        if isSubclass {
            set(NSNumber(value: value) as Any?, forKey: aKey)
        } else {
            set(Int64(value), forKey: aKey)
        }
    }

    // MARK: - Changes

    /// The changes from now on, the app's own included, each with its origin.
    /// <!-- Snippets/Observing.swift: changes -->
    /// ```swift
    /// func logChanges() async {
    ///     for await change in store.changes {
    ///         print("\(change.origin): \(change.keys)")
    ///     }
    /// }
    /// ```
    public var changes: UbiquityChanges {
        backing.driver.notifyOwnWrites()
        return UbiquityChanges(backing.poster.changes)
    }

    // MARK: - Sync

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
                "\(holder) holds this device's connection and does not respond; let it continue, "
                    + "or end it"
            )
        }
    }

    /// Returns when the first download of this account's values has completed, at once if it
    /// already has. From then on, a key without a value was never set, or was removed.
    ///
    /// It waits for as long as that takes, including for a sign-in.
    /// <!-- Snippets/Conflicts.swift: initialSync -->
    /// ```swift
    /// func isNewPlayer(in store: UbiquitousKeyValueStore) async throws -> Bool {
    ///     try await store.initialSync()
    ///     return store.object(forKey: "level") == nil
    /// }
    /// ```
    ///
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
        return backing.poster.statuses.stream(newest: 1, first: [engineStatus])
            .map { backing.status(of: $0) }
    }

    /// Errors that no call could report: refused writes, values that cannot be read, a broken file.
    /// Network errors are in ``status``.
    ///
    /// A slow reader gets the newest 64. An error that repeats without end is reported once a
    /// second. The sequence supports one reader.
    /// <!-- Snippets/Limits.swift: errors -->
    /// ```swift
    /// func logErrors() async {
    ///     for await error in store.errors { print("\(error.code): \(error)") }
    /// }
    /// ```
    public var errors: some AsyncSequence<UbiquityError, Never> & Sendable {
        backing.poster.errors.stream(newest: NotificationPoster.errorsMax)
    }

    func checkIdentifier() throws {
        guard backing.identifier != nil else {
            throw UbiquityError(.notConfigured, "this app has no store identifier")
        }
    }

    /// - Throws: ``UbiquityError`` for a key that cannot exist.
    func validKey(_ name: String) throws -> Key {
        do { return try Key(name) } catch { throw UbiquityError(.invalid, "\(error)") }
    }

    // MARK: - Refused writes

    /// The writes that the server refused, the newest first; at most 1,024 are kept. Reads from
    /// disk.
    /// <!-- Snippets/Limits.swift: refused -->
    /// ```swift
    /// func rescueRefusedWrites(into folder: URL) throws {
    ///     for (number, write) in try store.refusedWrites().enumerated() {
    ///         let text = "\(write.key), \(write.date): \(write.value ?? "removed")\n\(write.reason)\n"
    ///         try Data(text.utf8).write(to: folder.appendingPathComponent("refused-\(number).txt"))
    ///     }
    ///     try store.forgetRefusedWrites()
    /// }
    /// ```
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public func refusedWrites() throws -> [UbiquityRefusedWrite] {
        try storageErrors { try backing.driver.refusedWrites() }.filter { !$0.isSuperseded }.map {
            write in
            UbiquityRefusedWrite(
                key: write.record.key.string, value: write.record.content.value?.boxed,
                date: Date(milliseconds: write.record.stamp.timestamp.milliseconds),
                reason: write.refusal.detail)
        }
    }

    /// Removes the refused writes, once the app has dealt with them.
    ///
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/storage``.
    public func forgetRefusedWrites() throws {
        try storageErrors { try backing.driver.forgetRefusedWrites() }
    }
}

/// A write that the server refused after this device had accepted it, kept so that nothing is lost
/// silently.
///
/// This happens when several devices fill the store together, and when a key was deleted long ago.
/// `@unchecked Sendable` because the value consists of Foundation's immutable property-list
/// classes.
public struct UbiquityRefusedWrite: @unchecked Sendable {
    /// The key, which has its last confirmed value again.
    public var key: String
    /// The value that was to be stored, boxed as by ``UbiquitousKeyValueStore/object(forKey:)``;
    /// nil for a removal.
    public var value: Any?
    /// When the app wrote it.
    public var date: Date
    /// A sentence with the reason.
    public var reason: String
}
