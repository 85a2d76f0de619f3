// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityTesting

@Suite("A device that changes hands")
struct AccountTests {
    private let two = TwoDevices()
    private let change = NSUbiquitousKeyValueStoreAccountChange

    @Test func `has the other account's values, and returns what it had not sent`() {
        let other = two.cloud.newAccount("other")
        let tablet = two.cloud.newDevice("tablet", isSignedIn: false)
        tablet.signIn(to: other)
        tablet.openStore(TwoDevices.identifier).set("of the other", forKey: "k")
        two.cloud.settle()
        two.a.set("sent", forKey: "k")
        two.cloud.settle()
        two.phone.goOffline()
        two.a.set("unsent", forKey: "k")
        two.cloud.settle()

        two.phone.signIn(to: other)
        two.phone.goOnline()
        two.cloud.settle()
        #expect(two.phone.account == other)
        #expect(two.a.status.account == "other")
        #expect(two.a.string(forKey: "k") == "of the other")
        #expect(two.phone.notifications.first?.news == News(reason: change, keys: ["k"]))
        #expect(two.b.string(forKey: "k") == "sent")
        let others = two.cloud.server.values(ofStore: TwoDevices.identifier, account: other)
        #expect(others["k"] as? String == "of the other")

        two.phone.signIn(to: two.cloud.account)
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "unsent")
        #expect(two.b.string(forKey: "k") == "unsent")
    }

    @Test func `keeps its values when it is signed out, and is told once`() {
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        two.phone.signOut()
        two.cloud.settle()
        #expect(two.phone.account == nil)
        #expect(two.a.status.connection == .signedOut)
        #expect(two.a.string(forKey: "k") == "x")
        #expect(two.phone.notifications.map(\.news) == [News(reason: change, keys: [])])
        two.a.set("y", forKey: "k")
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "x")
        two.phone.signIn(to: two.cloud.account)
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "y")
    }

    @Test func `is empty when it is wiped, and has all again with the account`() {
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        two.phone.signOut(wipes: true)
        two.cloud.settle()
        #expect(two.a.dictionaryRepresentation.isEmpty)
        #expect(two.phone.notifications.map(\.news) == [News(reason: change, keys: ["k"])])
        two.phone.signIn(to: two.cloud.account)
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "x")
    }

    @Test func `takes what was written before the first sign-in along`() {
        let tablet = two.cloud.newDevice("tablet", isSignedIn: false)
        let c = tablet.openStore(TwoDevices.identifier)
        c.set("early", forKey: "k")
        two.cloud.settle()
        #expect(c.status.connection == .signedOut)
        tablet.signIn(to: two.cloud.account)
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "early")
    }
}
