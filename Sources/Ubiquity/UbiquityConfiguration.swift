// SPDX-License-Identifier: Apache-2.0

public import Dispatch
internal import Foundation
public import Logging
internal import UbiquityCore

/// The configuration of a store, for apps that need something other than the defaults.
/// <!-- Snippets/Limits.swift: configure -->
/// ```swift
/// var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.notes")
/// configuration.keyLimit = .utf16Units(128)
/// #if DEBUG
/// configuration.isStrict = true
/// #endif
/// ```
public struct UbiquityConfiguration: Sendable {
    /// The treatment of a device's own values when it first meets those of the account.
    public enum FirstSync: String, Hashable, Sendable {
        /// The server's value wins: a fresh install overwrites nothing.
        case serverWins
        /// The later write wins, as at any other time.
        case timestamps
    }

    /// The store's identifier, such as `TEAMID.com.example.app`. Apps with the same identifier
    /// share a store.
    ///
    /// If nil, the environment variable `UBIQUITY_KVSTORE_IDENTIFIER` applies, or otherwise
    /// `com.apple.developer.ubiquity-kvstore-identifier` in the entitlements property list beside
    /// the program, which has the program's name or is the only one there.
    public var identifier: String?
    /// The giver of ``identifier``, for an error that names it.
    package var giver = "the app"
    /// The folder that holds this device's sign-in and its stores. If nil, the environment variable
    /// `UBIQUITY_HOME` applies, or otherwise the platform's folder for application data.
    public var home: String?
    /// The treatment of the device's own values at the first sync, by default
    /// ``FirstSync/serverWins``.
    public var firstSync = FirstSync.serverWins
    /// The maximum length of a key until a server has announced one, by default 64 bytes of UTF-8.
    public var keyLimit = KeyLimit.utf8Bytes(64)
    /// Whether a refused write ends the program with an error message, for use in development. A
    /// full store does not end it, because that is not a mistake of the app.
    public var isStrict = false
    /// The keys whose values no history must have: what was replaced is gone, as is everything that
    /// the server's history had of the key before. See <doc:GoingBackInTime>.
    ///
    /// Applies to what this process writes, whichever process of the device sends it. Give the same
    /// keys in all apps that write them.
    public var historyExcluded: Set<String> = []
    /// The queue on which notifications are posted and sequences are fed; nil means a queue of the
    /// store's own.
    ///
    /// On Linux, do not use the main queue: Foundation would make posts there wait forever for
    /// observers registered with `queue: .main`. These observers are called on the main queue in
    /// any case.
    public var notificationQueue: DispatchQueue?
    /// Logs refused writes, a missing identifier and a broken file.
    public var logger = Logger(label: "ubiquity")

    /// The maximum length of a key.
    public enum KeyLimit: Hashable, Sendable {
        /// The unit in the published guides of Apple's store, with a maximum of 64.
        case utf8Bytes(Int)
        /// The unit in Apple's current SDK, with a maximum of 128.
        case utf16Units(Int)
    }

    /// Creates the default configuration, with or without an identifier.
    public init(identifier: String? = nil, home: String? = nil) {
        self.identifier = identifier
        self.home = home
    }

    /// The environment variable with the store's identifier.
    public static let identifierVariable = "UBIQUITY_KVSTORE_IDENTIFIER"
}

extension UbiquityConfiguration {
    var engineSettings: SyncEngine.Settings {
        var settings = SyncEngine.Settings()
        switch firstSync {
        case .serverWins: settings.firstSync = .serverWins
        case .timestamps: settings.firstSync = .timestamps
        }
        switch keyLimit {
        case .utf8Bytes(let max): settings.key = .utf8Bytes(max)
        case .utf16Units(let max): settings.key = .utf16Units(max)
        }
        settings.unkept = Set(historyExcluded.map { ExactString($0) })
        return settings
    }
}
