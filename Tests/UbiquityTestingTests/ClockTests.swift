// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@Suite("A device whose clock is wrong")
struct ClockTests {
    private let two = TwoDevices()

    @Test(arguments: [10, -10, 5_000, -5_000])
    func `writes after what it has seen`(minutes: Int) {
        two.laptop.clockError = .seconds(60 * minutes)
        for (number, store) in [two.a, two.b, two.a, two.b, two.a].enumerated() {
            store.set(number, forKey: "k")
            two.cloud.settle()
        }
        #expect(two.a.longLong(forKey: "k") == 4)
        #expect(two.b.longLong(forKey: "k") == 4)
    }

    @Test(arguments: [10, -10])
    func `keeps the order of edits that it made offline`(minutes: Int) {
        two.laptop.clockError = .seconds(60 * minutes)
        two.laptop.goOffline()
        two.b.set("laptop first", forKey: "k")
        two.a.set("phone first", forKey: "l")
        two.cloud.advance(by: .seconds(60))
        two.a.set("phone second", forKey: "k")
        two.b.set("laptop second", forKey: "l")
        two.cloud.advance(by: .seconds(60))
        two.laptop.goOnline()
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "phone second")
        #expect(two.b.string(forKey: "k") == "phone second")
        #expect(two.a.string(forKey: "l") == "laptop second")
    }

    @Test func `keeps its last edit when its clock is set back between two`() {
        two.laptop.goOffline()
        two.b.set("first", forKey: "k")
        two.cloud.advance(by: .seconds(1))
        two.laptop.clockError = .seconds(-7_200)
        two.b.set("second", forKey: "k")
        two.laptop.goOnline()
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "second")
    }

    @Test func `shows its own time, and the cloud the true one`() {
        two.laptop.clockError = .seconds(600)
        #expect(two.laptop.now == two.cloud.now.addingTimeInterval(600))
        #expect(two.phone.now == two.cloud.now)
        #expect(two.laptop.clockError == .seconds(600))
        two.laptop.restart()
        #expect(two.laptop.now == two.cloud.now.addingTimeInterval(600))
    }

    @Test func `agrees with others also when it is the server that is wrong`() {
        two.cloud.server.clockError = .seconds(-3_600)
        two.laptop.restart()
        let b = two.laptop.openStore(TwoDevices.identifier)
        two.a.set("first", forKey: "k")
        two.cloud.settle()
        b.set("second", forKey: "k")
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "second")
    }

    @Test func `starts when the test says so`() {
        let start = Date(timeIntervalSince1970: 1_000_000)
        let cloud = TestCloud(startingAt: start)
        #expect(cloud.now == start)
        cloud.advance(by: .seconds(2))
        #expect(cloud.newDevice("phone").now == start.addingTimeInterval(2))
    }
}
