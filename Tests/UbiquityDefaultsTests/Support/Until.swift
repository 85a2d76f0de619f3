// SPDX-License-Identifier: Apache-2.0

import Logging

/// It did not happen in time.
struct NeverHappened: Error, CustomStringConvertible {
    var description: String
}

/// Looks every few milliseconds, for ten seconds at most.
func until(_ what: String, _ condition: () throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(10)
    while try !condition() {
        guard .now < deadline else { throw NeverHappened(description: "\(what) never came") }
        try await Task.sleep(for: .milliseconds(2))
    }
}

extension Logger {
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
