// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityTesting

@Suite("A server")
struct ServerTests {
    private let two = TwoDevices()
    private var server: TestServer { two.cloud.server }

    @Test func `that is away is not missed, and gets all when it is back`() {
        server.stop()
        two.a.set("x", forKey: "k")
        two.cloud.advance(by: .seconds(3_600))
        #expect(two.a.string(forKey: "k") == "x")
        #expect(two.b.string(forKey: "k") == nil)
        #expect(two.a.status.pendingKeys == ["k"])
        #expect(!server.isRunning)
        server.start()
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `that was restored from a backup is healed by its devices, deletions included`() {
        two.a.set("old", forKey: "changed")
        two.a.set("old", forKey: "deleted")
        two.a.set("old", forKey: "kept")
        two.cloud.settle()
        let backup = server.backUp()
        two.a.set("new", forKey: "changed")
        two.b.set("new", forKey: "added")
        two.b.removeObject(forKey: "deleted")
        two.cloud.settle()
        #expect(two.onServer.count == 3)

        server.restore(backup)
        #expect(two.onServer["deleted"] as? String == "old")
        two.cloud.settle()
        let expected = ["changed": "new", "kept": "old", "added": "new"]
        #expect(two.onServer as? [String: String] == expected)
        #expect(two.a.dictionaryRepresentation as? [String: String] == expected)
        #expect(two.b.dictionaryRepresentation as? [String: String] == expected)
    }

    @Test func `that has compacted tombstones does not bring the deleted back`() {
        two.a.set("x", forKey: "deleted")
        two.a.set("y", forKey: "kept")
        two.cloud.settle()
        two.laptop.goOffline()
        two.cloud.settle()
        two.a.removeObject(forKey: "deleted")
        two.cloud.advance(by: .seconds(86_400))
        server.forgetDeletions()
        two.laptop.goOnline()
        two.cloud.settle()
        #expect(two.b.dictionaryRepresentation as? [String: String] == ["kept": "y"])
        #expect(two.a.dictionaryRepresentation as? [String: String] == ["kept": "y"])
    }

    @Test func `that refuses credentials is told in the status, and loses nothing`() {
        server.refusesCredentials = true
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        #expect(two.a.status.connection == .unauthorized)
        #expect(two.b.string(forKey: "k") == nil)
        server.refusesCredentials = false
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `that is slow is waited for`() {
        server.delay = .seconds(9)
        two.a.set("x", forKey: "k")
        two.cloud.advance(by: .seconds(8))
        #expect(two.b.string(forKey: "k") == nil)
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
    }

    @Test func `keeps the stores of apps apart`() {
        let other = two.phone.openStore("TEAM.com.example.other")
        other.set("other", forKey: "k")
        two.a.set("app", forKey: "k")
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "app")
        #expect(server.values(ofStore: "TEAM.com.example.other")["k"] as? String == "other")
    }
}
