// SPDX-License-Identifier: Apache-2.0

internal import Logging
internal import Synchronization

/// The store behind ``UbiquitousKeyValueStore/default``, made at its first use, and the device's
/// sign-in for `FileManager`.
///
/// Shared state: `setup`, guarded by a mutex that is held while the store is made, so that two
/// threads that come first get the same store; and `identity`, guarded by another mutex, because it
/// is used without a store.
final class DefaultStore: Sendable {
    static let shared = DefaultStore()

    fileprivate struct Setup {
        var configuration = UbiquityConfiguration()
        var store: UbiquitousKeyValueStore?
        /// Whether a stand-in was ever used in this process. If not, there is no need to look for
        /// one.
        var hasStandIn = false
    }

    fileprivate let setup = Mutex(Setup())
    private let identity = Mutex<DeviceIdentity?>(nil)

    func configure(_ configuration: UbiquityConfiguration) throws {
        try setup.withLock { setup in
            guard setup.store == nil else {
                throw UbiquityError(
                    .refused,
                    "the default store is in use already; call configureDefault(_:) when the app "
                        + "starts, before anything uses UbiquitousKeyValueStore.default")
            }
            setup.configuration = configuration
        }
    }

    /// The replacement of the default store in a test of an app; nil if this task has none.
    @TaskLocal fileprivate static var standIn: UbiquitousKeyValueStore?

    /// Never fails: if the file cannot be opened, the app continues in memory and an error is
    /// reported.
    var store: UbiquitousKeyValueStore {
        let (store, isNew) = setup.withLock { setup in
            if setup.hasStandIn, let store = Self.standIn { return (store, false) }
            if let store = setup.store { return (store, false) }
            let store = UbiquitousKeyValueStore(backing: Self.backing(setup.configuration))
            setup.store = store
            return (store, true)
        }
        // Apps that never ask for the token are notified of its changes as well.
        if isNew { _ = accountID }
        return store
    }

    /// The account that this device is signed in to; nil if there is none or it cannot be read.
    var accountID: String? {
        if let store = Self.standIn { return store.backing.accountID }
        return identity.withLock { identity in
            if let identity { return identity.accountID }
            let configuration = setup.withLock(\.configuration)
            guard let device = try? configuration.device() else { return nil }
            let made = DeviceIdentity(device)
            identity = made
            return made.accountID
        }
    }

    private static func backing(_ configuration: UbiquityConfiguration) -> StoreBacking {
        do { return try StoreBacking.open(configuration) } catch {
            configuration.logger.critical(
                "The store cannot be opened. Its values are kept in memory only: \(error)")
            return StoreBacking.inMemory(configuration)
        }
    }
}

extension UbiquitousKeyValueStore {
    /// Replaces the default store while the body runs, in its task and in tasks that it starts.
    package func standingForDefault<Result>(_ body: () throws -> Result) rethrows -> Result {
        DefaultStore.shared.setup.withLock { $0.hasStandIn = true }
        return try DefaultStore.$standIn.withValue(self, operation: body)
    }

    package func standingForDefault<Result>(
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        DefaultStore.shared.setup.withLock { $0.hasStandIn = true }
        return try await DefaultStore.$standIn.withValue(self, operation: body)
    }
}
