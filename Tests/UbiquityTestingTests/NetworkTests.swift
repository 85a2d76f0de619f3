// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@Suite("Two devices of one person")
struct NetworkTests {
    private let two = TwoDevices()

    @Test func `see each other's bookmarks`() {
        two.a.set("x", forKey: "k")
        #expect(two.b.string(forKey: "k") == nil)
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
        #expect(two.onServer["k"] as? String == "x")
    }

    @Test func `agree after one of them was offline for three days`() {
        let (cloud, laptop) = (two.cloud, two.laptop)
        laptop.goOffline()
        two.a.set("x", forKey: "k")
        let before = cloud.now
        cloud.advance(by: .seconds(3 * 86_400))
        #expect(cloud.now == before.addingTimeInterval(3 * 86_400))
        #expect(two.b.string(forKey: "k") == nil)
        #expect(two.b.status.connection == .waiting)
        laptop.goOnline()
        cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
        #expect(two.b.status.connection == .connected)
    }

    @Test func `keep the later of two edits, whichever arrives first`() {
        two.laptop.goOffline()
        two.a.set("earlier", forKey: "k")
        two.cloud.advance(by: .seconds(60))
        two.b.set("later", forKey: "k")
        two.cloud.advance(by: .seconds(60))
        two.laptop.goOnline()
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "later")
        #expect(two.b.string(forKey: "k") == "later")
    }

    @Test func `hear of a deletion with its key`() {
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        two.a.removeObject(forKey: "k")
        two.cloud.settle()
        #expect(two.b.object(forKey: "k") == nil)
        #expect(
            two.laptop.notifications.map(\.news) == [
                News(reason: NSUbiquitousKeyValueStoreServerChange, keys: ["k"]),
                News(reason: NSUbiquitousKeyValueStoreServerChange, keys: ["k"]),
            ])
    }

    @Test func `see a batch whole, and are told of it once`() throws {
        try two.a.performBatch { batch in
            for number in 0..<20 { try batch.set(number, forKey: "k\(number)") }
        }
        var counts: Set<Int> = []
        for _ in 0..<200 {
            two.cloud.advance(by: .milliseconds(1))
            counts.insert(two.b.dictionaryRepresentation.count)
        }
        #expect(counts == [0, 20])
        #expect(two.laptop.notifications.count == 1)
        #expect(two.laptop.notifications[0].changedKeys.count == 20)
        #expect(two.phone.notifications == [])
    }

    @Test func `wait for each other on a slow network`() {
        two.laptop.network.delay = .seconds(8) ... .seconds(9)
        two.a.set("x", forKey: "k")
        two.cloud.advance(by: .seconds(7))
        #expect(two.b.string(forKey: "k") == nil)
        two.cloud.advance(by: .seconds(3))
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `write once what they sent twice because the answer was lost`() {
        two.phone.network.lostAnswers = 0.7
        two.phone.network.doubledRequests = 0.5
        for number in 0..<20 {
            two.a.set(number, forKey: "k")
            two.cloud.advance(by: .seconds(5))
        }
        two.cloud.settle()
        #expect(two.a.longLong(forKey: "k") == 19)
        #expect(two.b.longLong(forKey: "k") == 19)
        // Nobody saw an older number after a newer one.
        #expect(two.a.status.pendingKeys == [])
    }

    @Test func `agree when a network that said nothing speaks again`() {
        two.laptop.network.isSilent = true
        two.a.set("x", forKey: "k")
        two.b.set("y", forKey: "l")
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == nil)
        #expect(two.a.string(forKey: "l") == nil)
        #expect(two.b.status.pendingKeys == ["l"])
        two.laptop.network.isSilent = false
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
        #expect(two.a.string(forKey: "l") == "y")
    }

    @Test func `settle a moment after a silence that nobody has noticed`() {
        two.laptop.network.isSilent = true
        two.laptop.network.isSilent = false
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
    }
}
