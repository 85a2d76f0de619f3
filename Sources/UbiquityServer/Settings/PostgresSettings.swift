// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The settings of a storage in PostgreSQL.
package struct PostgresSettings: Hashable, Sendable {
    /// An address as libpq takes it: several hosts, certificates, service files, and passwords from
    /// the environment work. May contain a password, so it is never shown.
    package var url: String
    /// The most connections of this node, besides the one that listens to other nodes.
    package var connectionsMax = 8
    /// Whether nothing is committed unless a synchronous standby has it.
    package var requiresSynchronousStandby = false

    /// The longest time that a statement may take.
    var statementMilliseconds: Int64 = 10_000
    /// The longest time that a statement may wait for a lock.
    var lockMilliseconds: Int64 = 5_000
    /// The server ends a transaction that its node left alone for this long, and so frees its locks:
    /// the node may have been stopped.
    var idleInTransactionMilliseconds: Int64 = 3_000
    /// The time after its first attempt for which a transaction is retried.
    var patienceMilliseconds: Int64 = 12_000
    /// Whether `now` is the caller's, and not the database's. For tests.
    var usesOwnClock = false

    package init(url: String) { self.url = url }

    /// The longest time that this side waits for an answer: longer than the server itself, because
    /// its refusal is better than silence.
    var answerMilliseconds: Int64 { statementMilliseconds + answerMarginMilliseconds }
    var answerMarginMilliseconds: Int64 = 5_000
}
