// SPDX-License-Identifier: Apache-2.0

package import Logging

/// It did not happen in time.
package struct NeverHappened: Error, CustomStringConvertible {
    package var description: String
}

/// Checks again and again, after a pause that grows to a fiftieth of a second, for five minutes at
/// most. The limit guards against hanging, and does not test speed.
package func until(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    var pause = Duration.milliseconds(5)
    while try await !condition() {
        guard .now < deadline else { throw NeverHappened(description: "\(what) never came") }
        try await Task.sleep(for: pause)
        pause = min(pause * 5 / 4, .milliseconds(20))
    }
}

extension Logger {
    package static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
