// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Testing
import Ubiquity
import UbiquityDefaults

/// A device that comes to another account, while the app runs and while it does not.
@Suite struct `A mirror and the device's account` {
    @Test(arguments: [true, false])
    func `has the other account's values and none of the first one's, which come back with it`(
        runs: Bool
    ) async throws {
        try await Cloud.withTwoDevices { cloud, bobs, device in
            try await cloud.signIn(bobs, as: "bob", isFirst: true)
            try await bobs.run(["theme", "size"]) { mirror in
                mirror.set("bob's", forKey: "theme")
                try await until("bob's theme") {
                    mirror.store.isSettled && mirror.store.object(forKey: "theme") != nil
                }
            }
            try await device.run(["theme", "size"]) { mirror in
                mirror.set("ann's", forKey: "theme")
                mirror.set(1, forKey: "size")
                try await until("ann's theme") {
                    mirror.store.isSettled && mirror.store.object(forKey: "size") != nil
                }
                guard runs else { return }
                try await cloud.signIn(device, as: "bob")
                try await until("bob's theme") {
                    device.defaults.string(forKey: "theme") == "bob's"
                }
                #expect(device.own.count == 1)
            }
            if !runs { try await cloud.signIn(device, as: "bob") }
            try await device.run(["theme", "size"]) { mirror in
                try await until("bob's theme") {
                    device.defaults.string(forKey: "theme") == "bob's"
                }
                #expect(device.own.count == 1)
                await mirror.updateNow()
                #expect(mirror.store.dictionaryRepresentation.count == 1)
                try await cloud.signIn(device)
                try await until("ann's values") {
                    device.defaults.string(forKey: "theme") == "ann's"
                        && device.defaults.integer(forKey: "size") == 1
                }
            }
        }
    }

    @Test func `keeps everything at a sign-out, and goes on for the same account`() async throws {
        try await Cloud.withTwoDevices { cloud, a, b in
            try await a.run(["theme"]) { mirrorA in
                try await b.run(["theme"]) { mirrorB in
                    mirrorA.set("dark", forKey: "theme")
                    try await until("the theme") { b.defaults.string(forKey: "theme") == "dark" }
                    try await UbiquityAccount.signOut(home: b.home)
                    try await until("the sign-out") {
                        mirrorB.store.status.connection == .signedOut
                    }
                    mirrorB.set("light", forKey: "theme")
                    await mirrorB.updateNow()
                    #expect(mirrorB.store.string(forKey: "theme") == "light")
                    try await cloud.signIn(b)
                    try await until("the change") { a.defaults.string(forKey: "theme") == "light" }
                }
            }
        }
    }

    @Test(arguments: [true, false])
    func `loses the values by a sign-out that wipes`(runs: Bool) async throws {
        try await Cloud.withTwoDevices { cloud, a, b in
            try await a.run(["theme"]) { mirrorA in
                mirrorA.set("dark", forKey: "theme")
                try await b.run(["theme"]) { mirrorB in
                    try await until("the theme") { b.defaults.string(forKey: "theme") == "dark" }
                    guard runs else { return }
                    try await UbiquityAccount.signOut(wipes: true, home: b.home)
                    try await until("the wiping") { b.own.isEmpty }
                }
                if !runs { try await UbiquityAccount.signOut(wipes: true, home: b.home) }
                try await b.run(["theme"]) { mirrorB in
                    #expect(b.own.isEmpty)
                    mirrorB.set("after", forKey: "theme")
                    await mirrorB.updateNow()
                    #expect(mirrorB.store.string(forKey: "theme") == "after")
                }
                #expect(a.defaults.string(forKey: "theme") == "dark")
            }
        }
    }

    @Test func `tells of a change that waited and that the other account must not get`()
        async throws
    {
        try await Cloud.with { cloud in
            let device = try Device()
            try await cloud.signIn(device, as: "ann", isFirst: true)
            try await device.run(["theme"]) { mirror in
                mirror.set("dark", forKey: "theme")
                try await until("the first sync") {
                    mirror.store.status.isInitialSyncComplete && mirror.store.isSettled
                        && mirror.store.string(forKey: "theme") == "dark"
                }
            }
            device.defaults.set("unsent", forKey: "theme")
            let other = try Device()
            try await cloud.signIn(other, as: "bob", isFirst: true)
            try await cloud.signIn(device, as: "bob")
            try await device.run(["theme"]) { mirror in
                var issues = mirror.issues.makeAsyncIterator()
                let issue = try await issues.next()
                #expect(issue?.kind == .discarded)
                #expect(issue?.key == "theme")
                #expect(device.own.isEmpty)
            }
        }
    }
}
