// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// How a store's sync stands at one moment: whether it works, and if not, why.
public struct UbiquityStatus: Hashable, Sendable {
    /// How the device is connected to the server.
    public enum Connection: String, Hashable, Sendable {
        /// The app has no store identifier: values stay on this machine.
        case notConfigured
        /// This device is not signed in to an account: values stay on it until it is.
        case signedOut
        case connecting
        case connected
        /// Connected without a live stream of changes: the account has as many as it may have, or a
        /// proxy keeps it back, see ``UbiquityStatus/lastError``. What is written here is sent as ever;
        /// what others write is asked for, with pauses that grow to a minute while nothing happens.
        case polling
        /// Not connected; the next attempt is made at ``UbiquityStatus/nextRetry``.
        case waiting
        /// The server refuses this device's credential: it was revoked or has
        /// expired, and the device needs a new sign-in.
        case unauthorized
    }

    /// How the device is connected to the server.
    public var connection: Connection
    /// The name of the account that this device is signed in to; nil: none.
    public var account: String?
    /// The keys whose newest value waits to be sent, in their order.
    public var pendingKeys: [String]
    /// When device and server last agreed; nil: never.
    public var lastSync: Date?
    /// What went wrong last on the way to the server, one sentence; nil after a success.
    public var lastError: String?
    /// When the next attempt is made; nil: none is waited for.
    public var nextRetry: Date?
    /// Whether the first download has completed. Until then a key without a value may have one on the
    /// server: "not here yet" is not "never set".
    public var isInitialSyncComplete: Bool
    /// Whether it is this process that holds the connection, for all processes of the device.
    public var holdsConnection: Bool
    /// The process that holds the connection and does not answer, such as "notes (4711)": nothing is
    /// sent until it goes on or ends. Nil: none, or nobody has waited for it yet.
    public var heldUpBy: String?
    /// Why the disk refused the last save, one sentence; nil: it did not. Values are kept in memory
    /// meanwhile, and saved when it works again.
    public var diskError: String?
    /// Bytes of all values, and how many there may be.
    public var bytes: Int
    /// The most bytes that all values may have together.
    public var bytesMax: Int
    /// How many keys have a value.
    public var keys: Int
    /// How many keys may have one.
    public var keysMax: Int

    /// - Parameter leader: The process that holds the connection, as far as it is known.
    init(
        _ engine: EngineStatus, account: String?, isConfigured: Bool,
        leader: @autoclosure () -> String?
    ) {
        connection = Connection(engine, isConfigured: isConfigured)
        self.account = account
        pendingKeys = engine.pendingKeys.sorted().map(\.string)
        lastSync = engine.link.lastSync.map(Date.init(milliseconds:))
        lastError = engine.link.lastError
        nextRetry = engine.link.nextRetry.map(Date.init(milliseconds:))
        isInitialSyncComplete = engine.hasCompletedFirstSync
        holdsConnection = engine.isLeading
        heldUpBy = engine.isHeldUp ? leader() ?? "another process" : nil
        diskError = engine.diskFailure
        bytes = engine.usage.bytes
        bytesMax = engine.limits.storeBytesMax
        keys = engine.usage.keys
        keysMax = engine.limits.keysMax
    }
}

extension UbiquityStatus.Connection {
    fileprivate init(_ engine: EngineStatus, isConfigured: Bool) {
        guard isConfigured else {
            self = .notConfigured
            return
        }
        guard engine.isSignedIn else {
            self = .signedOut
            return
        }
        switch engine.link.state {
        // Signed in a moment ago, and nobody has connected yet.
        case .signedOut, .connecting: self = .connecting
        case .connected: self = .connected
        case .polling: self = .polling
        case .waiting: self = .waiting
        case .unauthorized: self = .unauthorized
        }
    }
}

extension Date {
    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1_000) }
}
