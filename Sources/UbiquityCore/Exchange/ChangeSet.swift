// SPDX-License-Identifier: Apache-2.0

/// Changes that a store sends to a device at once, to be applied as one.
package struct ChangeSet: Hashable, Sendable {
    package var records: [Record]
    /// The place to resume from after these records.
    package var cursor: Cursor
    package var serverMilliseconds: Int64
    /// Whether this is the whole store without its tombstones. A key that is not listed does not
    /// exist.
    package var isWhole: Bool
    /// The store's tombstone horizon: all earlier tombstones have been dropped. Zero if none has,
    /// or if the server does not say.
    package var horizon: HybridTimestamp
    /// Present if the request also asked for it.
    package var config: ServerConfig?

    package init(
        records: [Record], cursor: Cursor, serverMilliseconds: Int64, isWhole: Bool,
        horizon: HybridTimestamp = .zero, config: ServerConfig? = nil
    ) {
        self.records = records
        self.cursor = cursor
        self.serverMilliseconds = serverMilliseconds
        self.isWhole = isWhole
        self.horizon = horizon
        self.config = config
    }
}

/// The configuration that a server announces to its devices.
package struct ServerConfig: Hashable, Sendable {
    package var serverMilliseconds: Int64
    package var limits: StoreLimits
    package var allowance: Allowance
    package var deletionsRememberedSeconds: Int64
    /// The interval of keep-alives on an idle stream; 0 if the server does not announce it.
    package var keepAliveSeconds: Int64

    package init(
        serverMilliseconds: Int64, limits: StoreLimits, allowance: Allowance,
        deletionsRememberedSeconds: Int64, keepAliveSeconds: Int64 = 0
    ) {
        self.serverMilliseconds = serverMilliseconds
        self.limits = limits
        self.allowance = allowance
        self.deletionsRememberedSeconds = deletionsRememberedSeconds
        self.keepAliveSeconds = keepAliveSeconds
    }
}

/// A message of a stream.
package enum StreamMessage: Hashable, Sendable {
    /// Bytes of an incomplete message arrived. Reported at most once a second.
    case progress
    case changes(ChangeSet)
    /// The listener has everything up to this cursor.
    case ready(Cursor, ServerConfig)
    /// The listener missed something and must ask again from its cursor.
    case resync
}

/// A store that is asked for in a stream of several.
package struct StreamedStore: Hashable, Sendable {
    package let identifier: StoreIdentifier
    /// Nil for the whole store.
    package let since: Position?
    /// Whether the device says that it has saved everything up to there.
    package let isSaved: Bool
    /// The generation of the key with which the device opens the values; 0 if it has none.
    package let generation: UInt32

    /// The maximum number of stores of a stream.
    package static let countMax = 64

    package init(
        _ identifier: StoreIdentifier, since: Position?, isSaved: Bool, generation: UInt32 = 0
    ) {
        self.identifier = identifier
        self.since = since
        self.isSaved = isSaved
        self.generation = generation
    }
}

/// The beginning of a store in a stream.
///
/// A listener is subscribed before the store is read. A commit between the two arrives twice and is
/// recognised by its revision. In the reverse order it would be missed.
package struct StreamStart: Hashable, Sendable {
    private let revision: Int64

    /// - Parameter cursor: That of the changes that are sent first.
    package init(_ cursor: Cursor) { revision = Position(cursor)?.revision ?? 0 }

    /// Whether a commit from the subscription is not part of the beginning.
    package func isNews(_ revision: Int64) -> Bool { revision > self.revision }
}
