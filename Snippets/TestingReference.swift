// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

/// The examples in the doc comments of `UbiquityTesting`, run as tests.
struct TestingReference {
    @Test func `a cloud with two devices`() {
        // snippet.cloud
        let cloud = TestCloud()
        let phone = cloud.newDevice("phone").openStore("TEAMID.com.example.notes")
        let laptop = cloud.newDevice("laptop").openStore("TEAMID.com.example.notes")

        phone.set("dark", forKey: "theme")
        cloud.settle()
        #expect(laptop.string(forKey: "theme") == "dark")
        // snippet.end
    }

    @Test func `another seed and another date`() {
        // snippet.cloud-init
        // Every run of one seed is the same; another seed has other delays.
        let cloud = TestCloud(seed: 7, startingAt: Date(timeIntervalSince1970: 1_767_225_600))
        // snippet.end
        #expect(cloud.now == Date(timeIntervalSince1970: 1_767_225_600))
    }

    @Test func `accounts and devices`() {
        let cloud = TestCloud()
        // snippet.account
        let friend = cloud.newAccount("of a friend")
        let borrowed = cloud.newDevice("phone", isSignedIn: false)
        borrowed.signIn(to: friend)
        #expect(borrowed.account == friend)
        // snippet.end
        // snippet.new-device
        let guest = cloud.newDevice("tablet", isSignedIn: false)
        let store = guest.openStore("TEAMID.com.example.notes")
        cloud.settle()
        #expect(store.status.connection == .signedOut)
        // snippet.end
    }

    @Test func `an account is sealed`() {
        // snippet.seal
        let cloud = TestCloud()
        cloud.seal()
        let phone = cloud.newDevice("phone", isSignedIn: false)
        phone.signIn(to: cloud.account, isLocked: true)
        let store = phone.openStore("TEAMID.com.example.notes")
        store.set("dark", forKey: "theme")
        cloud.settle()
        #expect(store.status.connection == .locked)
        phone.unlock()
        cloud.settle()
        #expect(store.status.pendingKeys.isEmpty)
        // snippet.end
    }

    @Test func `hours pass at once`() {
        let cloud = TestCloud()
        let laptop = cloud.newDevice("laptop")
        let store = laptop.openStore("TEAMID.com.example.notes")
        // snippet.settle
        store.set("dark", forKey: "theme")
        cloud.settle()  // saved, sent, and every store notified
        #expect(store.status.pendingKeys.isEmpty)
        // snippet.end
        // snippet.advance
        laptop.goOffline()
        cloud.advance(by: .seconds(7_200))
        laptop.goOnline()
        cloud.settle()
        // snippet.end
        #expect(store.status.connection == .connected)
    }

    @MainActor
    @Test func `a task of the app is waited for`() async {
        let cloud = TestCloud()
        let store = cloud.newDevice("phone").openStore("TEAMID.com.example.notes")
        // snippet.settle-until
        var seen: [[String]] = []
        let task = Task { for await change in store.changes { seen.append(change.keys) } }
        await Task.yield()
        store.set("dark", forKey: "theme")
        #expect(await cloud.settle(until: { seen == [["theme"]] }))
        task.cancel()
        // snippet.end
    }

    @Test func `a device with several stores and processes`() {
        let cloud = TestCloud()
        // snippet.device
        let phone = cloud.newDevice("phone")
        let store = phone.openStore("TEAMID.com.example.notes")
        store.set("dark", forKey: "theme")
        phone.reinstall()  // and the values come back from the server
        // snippet.end
        // snippet.open-configured
        var configuration = UbiquityConfiguration(identifier: "TEAMID.com.example.game")
        configuration.firstSync = .timestamps
        let game = phone.openStore(configuration)
        // snippet.end
        #expect(game !== store)
        // snippet.process
        let widget = phone.newProcess("widget")
        let shown = widget.openStore("TEAMID.com.example.game")
        game.set(12, forKey: "level")
        cloud.settle()
        #expect(shown.longLong(forKey: "level") == 12)
        widget.quit()
        // snippet.end
    }

    @Test func `crashes and a loss of power`() {
        let cloud = TestCloud()
        let phone = cloud.newDevice("phone")
        // snippet.kill
        let store = phone.openStore("TEAMID.com.example.notes")
        store.set("first", forKey: "note.1")
        store.synchronize()
        store.set("second", forKey: "note.2")
        phone.kill()

        let reopened = phone.openStore("TEAMID.com.example.notes")
        #expect(reopened.dictionaryRepresentation.count == 1)
        // snippet.end
        // snippet.restart
        reopened.set("third", forKey: "note.3")
        cloud.settle()
        phone.restart()
        let afterwards = phone.openStore("TEAMID.com.example.notes")
        #expect(afterwards.string(forKey: "note.3") == "third")
        // snippet.end
    }

    @Test func `notifications are recorded`() {
        let cloud = TestCloud()
        let phone = cloud.newDevice("phone")
        let other = cloud.newDevice("laptop").openStore("TEAMID.com.example.notes")
        _ = phone.openStore("TEAMID.com.example.notes")
        cloud.settle()
        // snippet.notifications
        phone.forgetNotifications()
        other.set("dark", forKey: "theme")
        cloud.settle()
        #expect(phone.notifications.map(\.changedKeys) == [["theme"]])
        // snippet.end
        // snippet.notification
        let reasons = phone.notifications.map(\.reason)
        #expect(reasons == [NSUbiquitousKeyValueStoreServerChange])
        // snippet.end
    }

    @Test func `a bad network and a wrong clock`() {
        let cloud = TestCloud()
        let phone = cloud.newDevice("phone")
        let store = phone.openStore("TEAMID.com.example.notes")
        cloud.settle()
        // snippet.offline
        phone.goOffline()
        store.set("written in a tunnel", forKey: "note.1")
        cloud.settle()
        #expect(store.status.pendingKeys == ["note.1"])
        phone.goOnline()
        // snippet.end
        // snippet.network
        phone.network.delay = .seconds(2) ... .seconds(5)
        phone.network.lostAnswers = 0.3
        store.set("written on a train", forKey: "note.2")
        cloud.settle()
        #expect(store.status.pendingKeys.isEmpty)
        // snippet.end
        // snippet.test-network
        var train = TestNetwork()
        train.delay = .milliseconds(500) ... .seconds(8)
        train.lostRequests = 0.2
        phone.network = train
        // snippet.end
        // snippet.clock
        phone.clockError = .seconds(-3_600)  // an hour behind
        store.set("later than anything before", forKey: "note.1")
        cloud.settle()
        #expect(
            cloud.server.values(ofStore: "TEAMID.com.example.notes")["note.1"] as? String
                == "later than anything before")
        // snippet.end
    }

    @Test func `signing out and a full disk`() {
        let cloud = TestCloud()
        let phone = cloud.newDevice("phone")
        let store = phone.openStore("TEAMID.com.example.notes")
        cloud.settle()
        // snippet.disk
        phone.isDiskFull = true
        store.set("dark", forKey: "theme")
        #expect(!store.synchronize())
        phone.isDiskFull = false
        #expect(store.synchronize())
        // snippet.end
        // snippet.sign-out
        phone.signOut(wipes: true)
        cloud.settle()
        #expect(store.dictionaryRepresentation.isEmpty)
        // snippet.end
    }

    @Test func `a server that fails`() {
        let cloud = TestCloud()
        let store = cloud.newDevice("phone").openStore("TEAMID.com.example.notes")
        cloud.settle()
        // snippet.server
        cloud.server.stop()
        store.set("dark", forKey: "theme")
        cloud.settle()
        #expect(store.status.pendingKeys == ["theme"])
        cloud.server.start()
        cloud.settle()
        #expect(store.status.pendingKeys.isEmpty)
        // snippet.end
        // snippet.backup
        let backup = cloud.server.backUp()
        store.set("light", forKey: "theme")
        cloud.settle()
        cloud.server.restore(backup)
        cloud.settle()  // the device gives the server back what it lost
        #expect(
            cloud.server.values(ofStore: "TEAMID.com.example.notes")["theme"] as? String
                == "light")
        // snippet.end
        // snippet.limits
        cloud.server.limits.keysMax = 1
        cloud.server.stop()
        cloud.server.start()
        cloud.settle()
        store.set("one too many", forKey: "note.1")
        #expect(store.object(forKey: "note.1") == nil)
        // snippet.end
        // snippet.refuses
        cloud.server.refusesCredentials = true
        cloud.server.stop()
        cloud.server.start()
        cloud.advance(by: .seconds(60))  // within which the device connects again
        #expect(store.status.connection == .unauthorized)
        // snippet.end
    }

    struct Game {
        func start() { UbiquitousKeyValueStore.default.increment(forKey: "starts") }
    }

    @Test func `code that names no store`() {
        let cloud = TestCloud()
        // snippet.default
        let store = cloud.newDevice("phone").openStore("TEAMID.com.example.game")
        store.asDefault { Game().start() }
        #expect(store.longLong(forKey: "starts") == 1)
        // snippet.end
    }
}
