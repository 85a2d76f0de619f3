// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// A message that a worker prints, one JSON document a line. Times are `MonotonicTime`.
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

    /// The ``CountingApp`` is about to take a step.
    case attempting
    /// The store has the step.
    case acknowledged

    package struct Status: Codable, Hashable, Sendable {
        package var isLeading: Bool
        package var isConnected: Bool
    }

    /// A change that came from outside.
    package struct Notice: Codable, Hashable, Sendable {
        package var reason: Int?
        package var keys: [String]
        /// The values that the observer read for the keys.
        package var values: [String: String]
        package var at: UInt64
    }
}

/// The standard output. What was printed is out, even if the process is killed right after.
///
/// Shared state: the file, guarded by a mutex, for changes are printed by the store's own thread.
enum MessageOutput {
    private static let file = Mutex(FileHandle.standardOutput)

    static func print(_ message: some Encodable) {
        do {
            let line = try JSONEncoder().encode(message) + Data("\n".utf8)
            try file.withLock { try $0.write(contentsOf: line) }
        } catch { fatalError("A message could not be printed: \(error)") }
    }
}
