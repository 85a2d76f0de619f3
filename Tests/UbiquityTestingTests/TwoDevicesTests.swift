// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

struct TwoDevicesTests {
    @Test func `two devices see each other's bookmarks`() {
        let cloud = TestCloud()
        let phone = cloud.newDevice("phone")
        let laptop = cloud.newDevice("laptop")
        let a = phone.openStore("TEAM.com.example.app")
        let b = laptop.openStore("TEAM.com.example.app")
        cloud.settle()
        laptop.goOffline()
        a.set("x", forKey: "k")
        let before = cloud.now
        cloud.advance(by: .seconds(3 * 86_400))
        #expect(cloud.now == before.addingTimeInterval(3 * 86_400))
        #expect(b.string(forKey: "k") == nil)
        laptop.goOnline()
        cloud.settle()
        #expect(b.string(forKey: "k") == "x")
    }
}
