// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@Suite("A sealed account")
struct SealedTests {
    private let two = TwoDevices()
    private let store = TwoDevices.identifier

    @Test func `has what was there before, and devices go on`() {
        two.a.set("before", forKey: "k")
        two.cloud.settle()
        two.cloud.seal()
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "before")
        two.b.set("after", forKey: "k")
        two.a.increment(forKey: "n", by: 2)
        two.cloud.settle()
        #expect(two.a.string(forKey: "k") == "after")
        #expect(two.b.longLong(forKey: "n") == 2)
        #expect(two.cloud.server.values(ofStore: store)["k"] as? String == "after")
    }

    @Test func `gets another key, and loses nothing that was written meanwhile`() {
        two.cloud.seal()
        two.a.set("first", forKey: "k")
        two.cloud.settle()
        two.phone.goOffline()
        two.a.set("offline", forKey: "k")
        two.cloud.seal()
        two.b.set("other", forKey: "l")
        two.cloud.settle()
        two.phone.goOnline()
        two.cloud.settle()
        #expect(two.b.string(forKey: "k") == "offline")
        #expect(two.a.string(forKey: "l") == "other")
    }

    @Test func `is not read by a locked device, which keeps what is written there`() {
        two.a.set("secret", forKey: "k")
        two.cloud.settle()
        two.cloud.seal()
        let tablet = two.cloud.newDevice("tablet", isSignedIn: false)
        tablet.signIn(to: two.cloud.account, isLocked: true)
        let c = tablet.openStore(store)
        c.set("mine", forKey: "m")
        two.cloud.settle()
        #expect(c.status.connection == .locked)
        #expect(c.string(forKey: "k") == nil)
        #expect(c.status.pendingKeys == ["m"])
        #expect(two.a.string(forKey: "m") == nil)
        tablet.unlock()
        two.cloud.settle()
        #expect(c.string(forKey: "k") == "secret")
        #expect(two.a.string(forKey: "m") == "mine")
    }

    @Test func `stays locked on a device that misses its next key`() {
        two.cloud.seal()
        two.laptop.signIn(to: two.cloud.newAccount("other"))
        two.cloud.settle()
        two.laptop.signIn(to: two.cloud.account, isLocked: true)
        two.cloud.settle()
        #expect(two.b.status.connection == .connected, "It has kept its key.")
        two.laptop.signOut(wipes: true)
        two.laptop.signIn(to: two.cloud.account, isLocked: true)
        two.cloud.seal()
        two.cloud.settle()
        #expect(two.b.status.connection == .locked)
    }

    @Test func `has a history from its sealing on`() async throws {
        two.a.set("before", forKey: "k")
        await two.cloud.settle()
        two.cloud.seal()
        two.a.set("after", forKey: "k")
        await two.cloud.settle()
        let versions = try await two.a.history(forKey: "k")
        #expect(versions.compactMap { $0.value as? String }.contains("after"))
    }

    @Test func `of a server that is restored from before its sealing is sent nothing`() {
        two.a.set("clear", forKey: "k")
        two.cloud.settle()
        let backup = two.cloud.server.backUp()
        two.cloud.seal()
        two.a.set("secret", forKey: "k")
        two.cloud.settle()
        two.cloud.server.restore(backup)
        two.a.set("also secret", forKey: "l")
        two.cloud.settle()
        #expect(two.cloud.server.values(ofStore: store)["l"] == nil)
        #expect(two.a.status.pendingKeys.contains("l"))
        #expect(two.a.status.lastError != nil)
    }
}
