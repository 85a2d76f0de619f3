// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import UbiquityCore

/// The state of a store's sync at one moment: whether it works, and if not, why.
/// <!-- Snippets/GettingStarted.swift: status -->
/// ```swift
/// func explain(_ status: UbiquityStatus) -> String {
///     switch status.connection {
///     case .connected, .polling: "synced; \(status.pendingKeys.count) keys wait to be sent"
///     case .connecting: "connecting"
///     case .waiting: "no connection: \(status.lastError ?? "the reason is not known")"
///     case .signedOut: "this device is not signed in"
///     case .locked: "this device needs the account's key"
///     case .unauthorized: "this device must be signed in again"
///     case .notConfigured: "this app has no store identifier"
///     }
/// }
/// print(explain(store.status))
/// ```
public struct UbiquityStatus: Hashable, Sendable {
    /// The state of the connection to the server.
    public enum Connection: String, Hashable, Sendable {
        /// The app has no store identifier. Values stay on this machine.
        case notConfigured
        /// This device is not signed in to an account. Values stay on it until it is.
        case signedOut
        case connecting
        case connected
        /// Connected without a live stream of changes, because the account has reached its limit, a
        /// proxy buffers the stream, or streams end before they are ready, see
        /// ``UbiquityStatus/lastError``. Writes are sent as usual. Other devices' changes are polled,
        /// at intervals that grow to a minute while nothing happens.
        case polling
        /// Not connected. The next attempt is made at ``UbiquityStatus/nextRetry``.
        case waiting
        /// The server refuses this device's credential, which was revoked or has expired. The
        /// device needs a new sign-in.
        case unauthorized
        /// The account is sealed, and this device does not have its key: nothing is sent or received,
        /// and values stay on it until it has the key.
        case locked
    }

    /// The state of the connection to the server.
    public var connection: Connection
    /// The name of the account that this device is signed in to; nil if there is none.
    public var account: String?
    /// The keys whose newest value waits to be sent, sorted.
    public var pendingKeys: [String]
    /// The keys of which the server has something that this device does not take, sorted: a value that the
    /// account's key does not open, a deletion that is dated in the future, or an older value than the
    /// device has agreed on. The device keeps what it has. Writing such a key, also with the same value,
    /// replaces what the server has. At most 1,000; normally none.
    public var setAsideKeys: [String]
    /// When device and server last agreed; nil means never.
    public var lastSync: Date?
    /// A sentence about the last connection error; nil after a success.
    public var lastError: String?
    /// When the next attempt is made; nil if there is none.
    public var nextRetry: Date?
    /// Whether the first download has completed. Until then, a key without a value may have one on
    /// the server: "not here yet" is not "never set".
    public var isInitialSyncComplete: Bool
    /// Whether this process holds the connection for all processes of the device.
    public var holdsConnection: Bool
    /// The process that holds the connection and does not respond, such as "notes (4711)". Nothing
    /// is sent until it continues or ends. Nil if there is none, or if nobody has waited for it
    /// yet.
    public var heldUpBy: String?
    /// A sentence about why the last save failed; nil if it did not. Values are kept in memory
    /// meanwhile, and saved when the disk works again.
    public var diskError: String?
    /// The size of all values in bytes.
    public var bytes: Int
    /// The maximum size of all values together, in bytes.
    public var bytesMax: Int
    /// The number of keys with a value.
    public var keys: Int
    /// The maximum number of keys.
    public var keysMax: Int

    /// - Parameter leader: The process that holds the connection, if known.
    init(
        _ engine: EngineStatus, account: String?, isConfigured: Bool,
        leader: @autoclosure () -> String?
    ) {
        connection = Connection(engine, isConfigured: isConfigured)
        self.account = account
        pendingKeys = engine.pendingKeys.sorted().map(\.string)
        setAsideKeys = engine.setAside.keys.sorted().map(\.string)
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
        // Signed in a moment ago, and not connected yet.
        case .signedOut, .connecting: self = .connecting
        case .connected: self = .connected
        case .polling: self = .polling
        case .waiting: self = .waiting
        case .unauthorized: self = .unauthorized
        case .locked: self = .locked
        }
    }
}
