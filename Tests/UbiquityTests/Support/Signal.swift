// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Synchronization

/// Fired from anywhere, any number of times, and waited for in a test.
final class Signal: Sendable {
    private let count = Mutex(0)

    var hasFired: Bool { times > 0 }
    var times: Int { count.withLock { $0 } }

    func fire() { count.withLock { $0 += 1 } }

    func wait(times: Int = 1) async throws {
        try await until("the signal") { self.times >= times }
    }
}
