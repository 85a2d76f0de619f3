// SPDX-License-Identifier: Apache-2.0

package import Logging

/// It did not happen in time.
package struct NeverHappened: Error, CustomStringConvertible {
    package var description: String
}

/// Checks every few milliseconds, for five minutes at most. The limit guards against hanging, and
/// does not test speed.
package func until(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    while try await !condition() {
        guard .now < deadline else { throw NeverHappened(description: "\(what) never came") }
        try await Task.sleep(for: .milliseconds(5))
    }
}

extension Logger {
    package static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
