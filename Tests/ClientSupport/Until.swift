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

/// Waits until a write is later than all others by the clocks of every device.
///
/// A device measures the server's clock by a request, and errs by at most half the time that this
/// took. So two devices differ by no more than all the time that has passed.
/// - Parameter began: Before the devices' first requests.
package func outlastClockErrors(since began: ContinuousClock.Instant) async throws {
    try await Task.sleep(for: .now - began)
}

extension Logger {
    package static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
