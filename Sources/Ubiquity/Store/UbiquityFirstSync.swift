// SPDX-License-Identifier: Apache-2.0

internal import UbiquityCore

/// The stores with values on this device, compared with the account's before the first sync: see
/// ``UbiquityAccount/signIn(server:code:deviceName:certificates:allowsPlainHTTP:allowsUnsealed:home:keeping:)``.
/// <!-- Snippets/Conflicts.swift: timestamps -->
/// ```swift
/// var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.game")
/// configuration.firstSync = .timestamps
/// let store = try UbiquitousKeyValueStore(configuration: configuration)
/// ```
public struct UbiquityFirstSync: Hashable, Sendable {
    /// The values to keep of the keys in ``Store/different``.
    public enum Choice: String, Hashable, Sendable, CaseIterable {
        /// The account's values: a fresh install overwrites nothing.
        case server
        /// This device's values. They replace the account's as ordinary writes.
        case device
        /// The value of each key that was written later, by the clocks of the devices.
        case newest
    }

    /// A store that this device has values of. Keys with a conflict policy are not listed: they
    /// merge.
    public struct Store: Hashable, Sendable {
        /// The store's identifier.
        public var identifier: String
        /// The keys that only this device has, sorted. They are added to the account.
        public var onlyHere: [String]
        /// The keys that only the account has, sorted. This device gets them.
        public var onlyOnServer: [String]
        /// The keys with different values on both sides, sorted.
        public var different: [String]
    }

    /// The stores with values on this device.
    public var stores: [Store]

    init(_ stores: [FirstSyncStore]) {
        self.stores = stores.map { store in
            Store(
                identifier: store.identifier.string,
                onlyHere: store.comparison.onlyHere.map(\.string).sorted(),
                onlyOnServer: store.comparison.onlyThere.map(\.string).sorted(),
                different: store.comparison.different.map(\.string).sorted())
        }
    }
}

extension UbiquityAccount {
    /// Signs this device in with a code, and asks first whose values to keep if this device and the
    /// account both have some.
    ///
    /// Nothing is written before `choose` returns, on this device or in the account. An error that it
    /// throws gives the sign-in up. A store whose app asks for
    /// ``UbiquityConfiguration/FirstSync/timestamps`` still lets the later write win.
    ///
    /// `choose` gets what both sides have. It is not called if nothing has to be decided, for example
    /// because this device has no values yet, or was signed in to the account before. The other
    /// parameters are those of
    /// ``signIn(server:code:deviceName:certificates:allowsPlainHTTP:allowsUnsealed:home:)``.
    /// <!-- Snippets/AddingADevice.swift: keeping -->
    /// ```swift
    /// func signIn(
    ///     _ server: String, _ code: String,
    ///     asking keepsThisDevices: @escaping @Sendable ([String]) async -> Bool
    /// ) async throws {
    ///     try await UbiquityAccount.signIn(server: server, code: code) { both in
    ///         let keys = both.stores.flatMap(\.different)
    ///         return await keepsThisDevices(keys) ? .device : .server
    ///     }
    /// }
    /// ```
    ///
    /// - Throws: The error of `choose`, or as that function.
    @discardableResult
    public static func signIn(
        server: String? = nil, code: String, deviceName: String? = nil, certificates: String? = nil,
        allowsPlainHTTP: Bool = false, allowsUnsealed: Bool = false, home: String? = nil,
        keeping choose: @escaping (UbiquityFirstSync) async throws -> UbiquityFirstSync.Choice
    ) async throws -> UbiquityAccount {
        let security = ConnectionSecurity(
            certificates: certificates, allowsPlainHTTP: allowsPlainHTTP)
        return try await signIn(
            server, by: .code(code), deviceName, security, allowsUnsealed, home
        ) { stores in
            switch try await choose(UbiquityFirstSync(stores)) {
            case .server: .server
            case .device: .device
            case .newest: .newest
            }
        }
    }
}
