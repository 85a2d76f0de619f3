// SPDX-License-Identifier: Apache-2.0

internal import Foundation
public import Logging

/// How a store is set up, where the defaults do not fit.
public struct UbiquityConfiguration: Sendable {
    /// What a device does with its own values when it first meets those of the account.
    public enum FirstSync: String, Hashable, Sendable {
        /// A key that the server has takes the server's value: a fresh install overwrites nothing.
        case serverWins
        /// The later write wins, as at any other time.
        case timestamps
    }

    /// The store's name, such as `TEAMID.com.example.app`; apps with the same identifier share
    /// it. Nil: the environment's `UBIQUITY_KVSTORE_IDENTIFIER`, else none.
    public var identifier: String?
    /// The folder that holds this device's sign-in and its stores. Nil: the environment's
    /// `UBIQUITY_HOME`, else the platform's place for application data.
    public var home: String?
    /// ``FirstSync/serverWins`` unless the app says otherwise.
    public var firstSync = FirstSync.serverWins
    /// Where refused writes and a missing identifier are reported.
    public var logger = Logger(label: "ubiquity")

    /// The defaults, with or without an identifier.
    public init(identifier: String? = nil, home: String? = nil) {
        self.identifier = identifier
        self.home = home
    }

    /// The environment variable that names the store.
    public static let identifierVariable = "UBIQUITY_KVSTORE_IDENTIFIER"

    package func resolvedIdentifier() -> String? {
        let fromEnvironment = ProcessInfo.processInfo.environment[Self.identifierVariable]
        return [identifier, fromEnvironment].compactMap(\.self).first { !$0.isEmpty }
    }
}
