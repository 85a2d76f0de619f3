// SPDX-License-Identifier: Apache-2.0

public import Dispatch
internal import Foundation
public import Logging
internal import UbiquityCore

/// How a store is set up, where the defaults do not fit.
public struct UbiquityConfiguration: Sendable {
    /// What a device does with its own values when it first meets those of the account.
    public enum FirstSync: String, Hashable, Sendable {
        /// A key that the server has takes the server's value: a fresh install overwrites nothing.
        case serverWins
        /// The later write wins, as at any other time.
        case timestamps
    }

    /// The store's name, such as `TEAMID.com.example.app`; apps with the same identifier share it.
    ///
    /// Nil: the environment's `UBIQUITY_KVSTORE_IDENTIFIER`; else the value of
    /// `com.apple.developer.ubiquity-kvstore-identifier` in the entitlements property list beside the
    /// program, which has the program's name or is the only one there; else none.
    public var identifier: String?
    /// The folder that holds this device's sign-in and its stores. Nil: the environment's
    /// `UBIQUITY_HOME`, else the platform's place for application data.
    public var home: String?
    /// ``FirstSync/serverWins`` unless the app says otherwise.
    public var firstSync = FirstSync.serverWins
    /// How long a key may be, as long as no server has said: 64 bytes of UTF-8, unless the app says
    /// otherwise.
    public var keyLimit = KeyLimit.utf8Bytes(64)
    /// Whether a refused write ends the program with a sentence, for the development of an app. A full
    /// store ends nothing: that is no mistake of the app.
    public var isStrict = false
    /// Where notifications are posted and sequences fed. Nil: on a queue of the store's own.
    ///
    /// On Linux, do not give the main queue: Foundation makes who posts there wait for observers that
    /// registered with `queue: .main`, for ever. They are called on the main queue in any case.
    public var notificationQueue: DispatchQueue?
    /// Where refused writes, a missing identifier and a broken file are reported.
    public var logger = Logger(label: "ubiquity")

    /// How long a key may be.
    public enum KeyLimit: Hashable, Sendable {
        /// As the published guides of Apple's store have it, with 64.
        case utf8Bytes(Int)
        /// As Apple's current SDK has it, with 128.
        case utf16Units(Int)
    }

    /// The defaults, with or without an identifier.
    public init(identifier: String? = nil, home: String? = nil) {
        self.identifier = identifier
        self.home = home
    }

    /// The environment variable that names the store.
    public static let identifierVariable = "UBIQUITY_KVSTORE_IDENTIFIER"
}

extension UbiquityConfiguration {
    /// The sign-in of the home that the store is in.
    func device() throws -> DeviceAccount {
        DeviceAccount.of(try storageErrors { try DeviceHome(path: home) })
    }

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
        return settings
    }
}
