// SPDX-License-Identifier: Apache-2.0

/// What a store tells a device at once; to be applied as one.
package struct ChangeSet: Hashable, Sendable {
    package var records: [Record]
    /// The place to resume from after these records.
    package var cursor: Cursor
    package var serverMilliseconds: Int64
    /// The whole store without its deletions: what is not listed is not there.
    package var isWhole: Bool
    /// The store's tombstone horizon: all its deletions from before are forgotten. Zero: none is, or
    /// the server does not say.
    package var horizon: HybridTimestamp
    /// For who asked for it as well.
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

/// What a server makes known to its devices.
package struct ServerConfig: Hashable, Sendable {
    package var serverMilliseconds: Int64
    package var limits: StoreLimits
    package var allowance: Allowance
    package var deletionsRememberedSeconds: Int64
    /// How often an idle stream gets a sign of life; 0: the server does not say.
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
