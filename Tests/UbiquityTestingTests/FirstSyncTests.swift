// SPDX-License-Identifier: Apache-2.0

import Testing
import Ubiquity
import UbiquityTesting

@Suite("A fresh install")
struct FirstSyncTests {
    private let two = TwoDevices()

    @Test func `overwrites nothing, adds what is new, and is told what it got`() {
        two.a.set(13, forKey: "a")
        two.a.set(3, forKey: "c")
        two.cloud.settle()
        two.phone.forgetNotifications()
        let tablet = two.cloud.newDevice("tablet")
        let c = tablet.openStore(TwoDevices.identifier)
        c.set(1, forKey: "a")
        c.set(2, forKey: "b")
        #expect(!c.status.isInitialSyncComplete)
        two.cloud.settle()
        let expected: [String: Int] = ["a": 13, "b": 2, "c": 3]
        #expect(c.dictionaryRepresentation as? [String: Int] == expected)
        #expect(two.a.dictionaryRepresentation as? [String: Int] == expected)
        #expect(
            tablet.notifications.map(\.news) == [
                News(reason: NSUbiquitousKeyValueStoreInitialSyncChange, keys: ["a", "c"])
            ])
        #expect(two.phone.notifications.map(\.changedKeys) == [["b"]])
    }

    @Test func `wins by its later write where the app asked for timestamps`() {
        two.a.set(13, forKey: "a")
        two.cloud.settle()
        var configuration = UbiquityConfiguration(identifier: TwoDevices.identifier)
        configuration.firstSync = .timestamps
        let c = two.cloud.newDevice("tablet").openStore(configuration)
        c.set(1, forKey: "a")
        two.cloud.settle()
        #expect(two.a.longLong(forKey: "a") == 1)
    }

    @Test func `on a device that had the app before begins with nothing`() {
        two.a.set("x", forKey: "k")
        two.cloud.settle()
        two.laptop.reinstall()
        let b = two.laptop.openStore(TwoDevices.identifier)
        #expect(b.object(forKey: "k") == nil)
        b.set("overwritten", forKey: "k")
        two.cloud.settle()
        #expect(b.string(forKey: "k") == "x")
        #expect(two.a.string(forKey: "k") == "x")
    }
}
