// SPDX-License-Identifier: Apache-2.0

/// What a worker prints, one JSON document a line. Times are ``MonotonicTime``.
package enum WorkerMessage: Codable, Hashable, Sendable {
    /// The store is open.
    case ready
    /// `set` or `remove` was begun then, and is done.
    case wrote(at: UInt64)
    case value(String?)
    case values([String: String])
    case synchronized(Bool)
    /// Nil: the round trip succeeded.
    case synced(failure: String?)
    case status(Status)
    /// Not an answer: it comes between them.
    case noticed(Notice)

    /// The storm is about to make these writes.
    case attempting(ClosedRange<Int>, at: UInt64)
    /// `synchronize()` was true after all writes up to this one.
    case acknowledged(through: Int)
    /// `synchronize()` was false.
    case refused(through: Int)
    case stormOver

    package struct Status: Codable, Hashable, Sendable {
        package var isLeading: Bool
        package var isConnected: Bool
    }

    /// A change that came from outside.
    package struct Notice: Codable, Hashable, Sendable {
        package var reason: Int?
        package var keys: [String]
        /// What the keys had when the observer read them.
        package var values: [String: String]
        package var at: UInt64
    }
}
