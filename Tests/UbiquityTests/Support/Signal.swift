// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Fired from anywhere, any number of times, and waited for in a test.
final class Signal: Sendable {
    struct NotFired: Error {}

    private let count = Mutex(0)

    var hasFired: Bool { times > 0 }
    var times: Int { count.withLock { $0 } }

    func fire() { count.withLock { $0 += 1 } }

    /// - Throws: ``NotFired`` after five minutes.
    func wait(times: Int = 1) async throws {
        let deadline = ContinuousClock.now + .seconds(300)
        while self.times < times {
            guard ContinuousClock.now < deadline else { throw NotFired() }
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}
