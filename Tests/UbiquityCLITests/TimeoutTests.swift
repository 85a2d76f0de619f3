// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity

@testable import UbiquityCLI

struct TimeoutTests {
    @Test func `what begins when the time is up does not get more of it`() async {
        let error = await #expect(throws: UbiquityError.self) {
            try await withTimeout(seconds: 3_600, since: .now - .seconds(3_601)) {
                try await Task.sleep(for: .seconds(3_600))
            }
        }
        #expect(error?.code == .unreachable)
    }
}
