// SPDX-License-Identifier: Apache-2.0

import ClientTestSupport
import Foundation
import Synchronization
import Testing
import Ubiquity
import UbiquityCore

@testable import UbiquityDefaults

/// Changes to the preferences, or to the store, while no mirror was running.
@Suite struct `A mirror that comes back` {
    @Test func `sends what changed and what was removed in the preferences meanwhile`() async throws
    {
        let began = ContinuousClock.now
        try await Cloud.withTwoDevices { _, a, b in
            try await a.run([.prefix("k.")]) { mirrorA in
                try await b.run([.prefix("k.")]) { mirrorB in
                    for key in ["k.changed", "k.removed", "k.same"] { mirrorB.set(1, forKey: key) }
                    try await until("the start") { a.own.count == 3 }
                }
                b.restart()
                b.defaults.set(2, forKey: "k.changed")
                b.defaults.removeObject(forKey: "k.removed")
                b.defaults.set(3, forKey: "k.new")
                mirrorA.set(9, forKey: "k.same")
                mirrorA.set(9, forKey: "k.changed")
                await mirrorA.updateNow()
                try await until("the change") { mirrorA.store.isSettled }
                try await outlastClockErrors(since: began)
                try await b.run([.prefix("k.")]) { mirrorB in
                    try await until("the store's value") {
                        b.defaults.integer(forKey: "k.same") == 9
                    }
                    try await until("the device's changes") {
                        a.defaults.integer(forKey: "k.changed") == 2 && a.own["k.removed"] == nil
                            && a.defaults.integer(forKey: "k.new") == 3
                    }
                    #expect(b.own.count == 3)
                }
            }
        }
    }

    @Test func `starts anew, and loses nothing, where the preferences were lost`() async throws {
        let device = try Device()
        try await device.run(["theme"]) { mirror in
            mirror.set("dark", forKey: "theme")
            await mirror.updateNow()
        }
        device.defaults.removePersistentDomain(forName: device.suite)
        #expect(device.own.isEmpty)
        try await device.run(["theme"]) { mirror in
            #expect(device.defaults.string(forKey: "theme") == "dark")
            #expect(mirror.store.string(forKey: "theme") == "dark")
        }
    }

    #if os(Linux)
    @Test func `has the preferences that were there when a process was killed as it wrote`()
        async throws
    {
        let device = try Device()
        device.defaults.set("mine", forKey: "other")
        try await device.run(["theme"]) { mirror in
            mirror.set("dark", forKey: "theme")
            await mirror.updateNow()
        }
        let file = PreferencesFile.folder + "/\(device.suite).plist"
        let copy = PreferencesFile.folder + "/.\(device.suite).ubiquity-copy"
        #expect(!FileManager.default.fileExists(atPath: copy))
        try FileManager.default.copyItem(atPath: file, toPath: copy)
        chmod(copy, 0o600)
        chmod(file, 0o640)
        try Data().write(to: URL(fileURLWithPath: file))
        device.defaults.synchronize()
        #expect(device.own.isEmpty)
        try await device.run(["theme"]) { _ in
            #expect(device.defaults.string(forKey: "other") == "mine")
            #expect(device.defaults.string(forKey: "theme") == "dark")
        }
        #expect(try device.saved["other"] as? String == "mine")
        #expect(!FileManager.default.fileExists(atPath: copy))
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o640)
    }
    #endif

    #if os(Linux)
    /// The app itself, or a process without a mirror, knows nothing of the mirrors' lock.
    @Test func `does not wait for ever where somebody empties the file at that moment`()
        async throws
    {
        let device = try Device()
        let path = PreferencesFile.folder + "/\(device.suite).plist"
        try FileManager.default.createDirectory(
            atPath: PreferencesFile.folder, withIntermediateDirectories: true)
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        let file = PreferencesFile(.suite(device.suite))
        let rounds = Mutex(0)
        // A thread of its own, which may be left behind.
        Thread.detachNewThread {
            for round in 0..<100 {
                truncate(path, 4 << 20)
                let emptying = DispatchGroup()
                DispatchQueue.global().async(group: emptying) {
                    usleep(UInt32(round) * 20)
                    truncate(path, 0)
                }
                file.exclusively {}
                emptying.wait()
                rounds.withLock { $0 += 1 }
            }
        }
        try await until("all rounds") { rounds.withLock { $0 } == 100 }
        try FileManager.default.removeItem(atPath: path)
    }
    #endif

    @Test func `keeps the preferences where the store was lost, and fills it again`() async throws {
        let device = try Device()
        try await device.run(["theme"]) { mirror in
            mirror.set("dark", forKey: "theme")
            await mirror.updateNow()
        }
        try FileManager.default.removeItem(atPath: device.home + "/stores")
        try await device.run(["theme"]) { mirror in
            #expect(device.defaults.string(forKey: "theme") == "dark")
            #expect(mirror.store.string(forKey: "theme") == "dark")
        }
    }

    #if os(Linux)
    @Test func `finds what was set before the first download, even after a kill`() async throws {
        let device = try Device()
        let home = try DeviceHome(path: device.home)
        try home.update { $0.signIn(.unreachable("ann")) }
        try await device.run(["theme"]) { mirror in
            mirror.set("dark", forKey: "theme")
            await mirror.updateNow()
            var saved = try device.saved
            #expect(saved["theme"] as? String == "dark")
            device.defaults.set("light", forKey: "theme")
            await mirror.updateNow()
            saved = try device.saved
            #expect(saved["theme"] as? String == "light")
        }
    }

    @Test func `finds what the store refused, even after a kill`() async throws {
        let device = try Device()
        try await device.run(["large"]) { mirror in
            mirror.set(Data(count: 1_048_577), forKey: "large")
            await mirror.updateNow()
            #expect(mirror.store.object(forKey: "large") == nil)
            let saved = try device.saved
            #expect((saved["large"] as? Data)?.count == 1_048_577)
        }
    }
    #endif

    @Test func `takes a key that was not mirrored meanwhile for a new one`() async throws {
        let device = try Device()
        try await device.run(["theme", "size"]) { mirror in
            mirror.set(1, forKey: "size")
            await mirror.updateNow()
        }
        try await device.run(["theme"]) { mirror in
            device.defaults.set(2, forKey: "size")
            mirror.store.set(3, forKey: "size")
            await mirror.updateNow()
            #expect(device.defaults.integer(forKey: "size") == 2)
        }
        try await device.run(["theme", "size"]) { mirror in
            #expect(device.defaults.integer(forKey: "size") == 3)
        }
    }
}
