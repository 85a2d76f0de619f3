// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityCore
import UbiquityDefaults

/// An app that has a mirror for the first time, on a device that has preferences already.
@Suite struct `The first launch of a mirror` {
    private static let keys: [MirroredKeys] = ["theme", "size", "registered"]

    @Test func `takes what the account has, and uploads what only the device has`() async throws {
        try await Cloud.withTwoDevices { _, a, b in
            a.defaults.set("dark", forKey: "theme")
            b.defaults.set("junk", forKey: "theme")
            b.defaults.set(12, forKey: "size")
            try await a.run(Self.keys) { mirrorA in
                try await until("the upload") {
                    mirrorA.store.isSettled && mirrorA.store.string(forKey: "theme") == "dark"
                }
                try await b.run(Self.keys) { mirrorB in
                    try await until("the theme") { b.defaults.string(forKey: "theme") == "dark" }
                    try await until("the size") { a.defaults.integer(forKey: "size") == 12 }
                    #expect(a.defaults.string(forKey: "theme") == "dark")
                }
            }
        }
    }

    @Test func `uploads no registered default, and lets none beat a stored value`() async throws {
        try await Cloud.withTwoDevices { _, a, b in
            a.defaults.set("stored", forKey: "registered")
            b.defaults.register(defaults: ["registered": "a default", "size": 10])
            try await a.run(Self.keys) { mirrorA in
                try await b.run(Self.keys) { mirrorB in
                    try await until("the stored value") {
                        b.defaults.string(forKey: "registered") == "stored"
                    }
                    await mirrorB.updateNow()
                    #expect(mirrorB.store.object(forKey: "size") == nil)
                    // Set to the same as the default: that is a value, and another than none.
                    b.defaults.set("a default", forKey: "registered")
                    mirrorB.update()
                    try await until("the set one") {
                        a.own["registered"] as? String == "a default"
                    }
                    mirrorB.removeObject(forKey: "registered")
                    try await until("the deletion") { a.own["registered"] == nil }
                    #expect(b.defaults.string(forKey: "registered") == "a default")
                }
            }
        }
    }

    @Test func `uploads nothing before the first download has completed, and keeps all meanwhile`()
        async throws
    {
        let device = try Device()
        let home = try DeviceHome(path: device.home)
        try home.update { $0.signIn(.unreachable("ann")) }
        device.defaults.set("mine", forKey: "theme")
        try await device.run(Self.keys) { mirror in
            mirror.set(12, forKey: "size")
            await mirror.updateNow()
            #expect(mirror.store.dictionaryRepresentation.isEmpty)
            #expect(device.own.keys.sorted() == ["size", "theme"])
        }
        // Signed in to no account at all, it need not wait for anything.
        try home.update { $0.signOut() }
        try await device.run(Self.keys) { mirror in
            try await until("the upload") {
                mirror.store.dictionaryRepresentation.keys.sorted() == ["size", "theme"]
            }
        }
    }

    @Test func `of a device that is signed in later lets the account's values win then`()
        async throws
    {
        try await Cloud.with { cloud in
            let (a, b) = (try Device(), try Device())
            try await cloud.signIn(a, isFirst: true)
            a.defaults.set("account's", forKey: "theme")
            b.defaults.set("device's", forKey: "theme")
            b.defaults.set(12, forKey: "size")
            try await b.run(Self.keys) { mirrorB in
                #expect(mirrorB.store.string(forKey: "theme") == "device's")
                try await a.run(Self.keys) { mirrorA in
                    try await until("the upload") {
                        mirrorA.store.isSettled
                            && mirrorA.store.string(forKey: "theme") == "account's"
                    }
                    try await cloud.signIn(b)
                    try await until("the account's theme") {
                        b.defaults.string(forKey: "theme") == "account's"
                    }
                    try await until("the device's size") {
                        a.defaults.integer(forKey: "size") == 12
                    }
                    #expect(a.defaults.string(forKey: "theme") == "account's")
                }
            }
        }
    }
}
