// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityCore

struct SystemClockTests {
    @Test func `the wall clock is the system's, and both clocks go on`() async throws {
        let before = SystemClock.reading()
        #expect(abs(before.wall - Int64(Date().timeIntervalSince1970 * 1_000)) < 1_000)
        try await Task.sleep(for: .milliseconds(20))
        let after = SystemClock.reading()
        #expect(after.uptime - before.uptime >= 19)
        #expect(after.boot == before.boot)
        #expect(after.boot != 0)
    }
}
