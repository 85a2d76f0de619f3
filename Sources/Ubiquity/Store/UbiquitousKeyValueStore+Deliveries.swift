// SPDX-License-Identifier: Apache-2.0

extension UbiquityAdditions where Self: UbiquitousKeyValueStore {
    /// Reports which of the person's devices have this store's changes, now and each time the
    /// answer changes.
    ///
    /// The server is asked at once, soon after each change of the store, and otherwise at intervals
    /// that grow to a minute. While it cannot be reached, the sequence yields nothing. A slow
    /// reader only gets the newest delivery. The sequence supports one reader, and ends when the
    /// reading task is cancelled or the store is released.
    /// <!-- Snippets/Observing.swift: deliveries -->
    /// ```swift
    /// func showDeliveries() async throws {
    ///     for try await delivery in store.deliveries {
    ///         print(delivery)  // on 2 of 3 devices; laptop was last seen on 2026-11-17
    ///         for device in delivery.devices where !device.isCurrent {
    ///             print("\(device.name) lacks \(device.changesBehind) changes")
    ///         }
    ///     }
    /// }
    /// ```
    public var deliveries: some AsyncSequence<UbiquityDelivery, Never> & Sendable {
        backing.driver.deliveries(changes: backing.poster.changes)
    }

    /// Asks the server which of the person's devices have the current value of a key, or its
    /// removal.
    ///
    /// No other device has what this device has not sent yet.
    ///
    /// - Parameter aKey: The key; nil for the whole store.
    /// - Throws: ``UbiquityError`` with ``UbiquityError/Code/notConfigured``,
    ///   ``UbiquityError/Code/notSignedIn``, ``UbiquityError/Code/unreachable``,
    ///   ``UbiquityError/Code/refused``, or ``UbiquityError/Code/invalid`` for a key that cannot
    ///   exist; and `CancellationError`.
    public func delivery(of aKey: String? = nil) async throws -> UbiquityDelivery {
        try checkIdentifier()
        return try await backing.driver.delivery(of: aKey.map { try validKey($0) })
    }
}
