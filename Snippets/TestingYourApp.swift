// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

// snippet.app
/// The app's code, as it ships.
final class Game {
    let store: UbiquitousKeyValueStore
    private(set) var best = 0

    init(_ store: UbiquitousKeyValueStore = .default) { self.store = store }

    func finish(level: Int) {
        best = max(best, level)
        store.set(best, forKey: "level")
    }

    /// Handles `didChangeExternallyNotification`.
    func storeChanged() {
        let known = Int(store.longLong(forKey: "level"))
        if known < best { store.set(best, forKey: "level") } else { best = known }
    }
}
// snippet.end

// snippet.first
@Test func `a level reached on the phone is known on the laptop`() {
    let cloud = TestCloud()
    let phone = cloud.newDevice("phone")
    let laptop = cloud.newDevice("laptop")
    let game = Game(phone.openStore("TEAMID.com.example.game"))
    let other = Game(laptop.openStore("TEAMID.com.example.game"))

    game.finish(level: 13)
    cloud.settle()
    other.storeChanged()

    #expect(other.best == 13)
    #expect(laptop.notifications.map(\.changedKeys) == [["level"]])
}
// snippet.end

// snippet.offline
@Test func `a lower level of a laptop that was offline for three days does not stay`() {
    let cloud = TestCloud()
    let (phone, laptop) = (cloud.newDevice("phone"), cloud.newDevice("laptop"))
    let game = Game(phone.openStore("TEAMID.com.example.game"))
    let other = Game(laptop.openStore("TEAMID.com.example.game"))
    cloud.settle()

    laptop.goOffline()
    game.finish(level: 13)
    cloud.advance(by: .seconds(3 * 86_400))
    other.finish(level: 1)
    laptop.goOnline()
    cloud.settle()
    // The later write has won, and the phone is told.
    #expect(game.store.longLong(forKey: "level") == 1)
    game.storeChanged()
    cloud.settle()
    #expect(other.store.longLong(forKey: "level") == 13)
}
// snippet.end

// snippet.faults
func faults(_ cloud: TestCloud, _ phone: TestDevice) {
    phone.goOffline()
    phone.network.delay = .seconds(2) ... .seconds(5)
    phone.network.lostAnswers = 0.3
    phone.network.isSilent = true
    phone.clockError = .seconds(600)
    phone.isDiskFull = true
    phone.kill()
    phone.restart()
    phone.reinstall()
    phone.signOut(wipes: true)
    phone.signIn(to: cloud.newAccount("of a friend"))

    let backup = cloud.server.backUp()
    cloud.server.stop()
    cloud.server.restore(backup)
    cloud.server.forgetDeletions()
    cloud.server.limits.keysMax = 3
    cloud.server.refusesCredentials = true
}
// snippet.end

// snippet.killed
@Test func `a bookmark survives the app once it is synchronized`() {
    let cloud = TestCloud()
    let phone = cloud.newDevice("phone")
    let store = phone.openStore("TEAMID.com.example.bookmarks")
    store.set("https://swift.org", forKey: "first")
    store.synchronize()
    store.set("https://example.com", forKey: "second")
    phone.kill()

    let reopened = phone.openStore("TEAMID.com.example.bookmarks")
    #expect(reopened.string(forKey: "first") != nil)
    #expect(reopened.string(forKey: "second") == nil)
}
// snippet.end

// snippet.seal
@Test func `a device without the account's key is locked until it is unlocked`() {
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
}
// snippet.end

// snippet.waiting
@Test func `the sync button has everything from the server when it is done`() async throws {
    let cloud = TestCloud()
    let a = cloud.newDevice("phone").openStore("TEAMID.com.example.game")
    let b = cloud.newDevice("laptop").openStore("TEAMID.com.example.game")
    var changes = b.changes.makeAsyncIterator()

    a.set("dark", forKey: "theme")
    try await a.synchronizeNow()
    try await b.synchronizeNow()
    await cloud.settle()

    #expect(b.string(forKey: "theme") == "dark")
    #expect(await changes.next()?.keys == ["theme"])
}
// snippet.end

// snippet.tasks
@MainActor
@Test func `a view follows the other device`() async {
    let cloud = TestCloud()
    let a = cloud.newDevice("phone").openStore("TEAMID.com.example.game")
    let settings = ObservableStore(
        cloud.newDevice("laptop").openStore("TEAMID.com.example.game"))
    let theme = UbiquityKey("theme", default: "light")

    a[theme] = "dark"
    #expect(await cloud.settle(until: { settings[theme] == "dark" }))
}
// snippet.end

// snippet.default
@Test func `code that names no store uses the device's`() {
    let cloud = TestCloud()
    let store = cloud.newDevice("phone").openStore("TEAMID.com.example.game")
    store.asDefault {
        Game().finish(level: 2)
    }
    #expect(store.longLong(forKey: "level") == 2)
}
// snippet.end
