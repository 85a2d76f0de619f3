// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Testing
import UbiquityCore

@testable import Ubiquity

@Suite struct `A device that cannot reach its server` {
    /// One app calls it so often when it starts, once a key.
    @Test func `synchronizes 1,400 times, each time with success, without a server`() throws {
        let local = try LocalStore()
        // Nobody answers there.
        try DeviceHome(path: local.folder.path).update { $0.signIn(.unreachable("ann")) }
        var failures = 0
        for number in Int64(0)..<1_400 {
            local.store.set(number, forKey: "key \(number % 100)")
            if !local.store.synchronize() { failures += 1 }
        }
        #expect(failures == 0)
    }
}
