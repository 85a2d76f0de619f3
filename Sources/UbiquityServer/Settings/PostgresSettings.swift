// SPDX-License-Identifier: Apache-2.0

/// A PostgreSQL database that several servers share, each a node.
package struct PostgresSettings: Hashable, Sendable {
    /// A URL or a connection string, as libpq takes them. May contain a password.
    package var address: String
    /// The connections of a node, besides the one on which it hears of the others.
    package var connectionsMax = 8
    /// Whether pushes are refused while no synchronous standby would confirm them.
    package var requiresSynchronousStandby = false

    package init(address: String) { self.address = address }
}
