// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// Tests the observer with notifications like those that the store posts.
@MainActor
struct LevelGameTests {
    private let store: NSUbiquitousKeyValueStore
    private let game: LevelGame

    init() throws {
        TestHome.use()
        store = DictionaryStore()
        // Never written to the disk: nobody synchronizes it.
        let defaults = try #require(UserDefaults(suiteName: "level-game-" + UUID().uuidString))
        game = LevelGame(store: store, defaults: defaults)
    }

    private func receive(_ level: Int64, reason: Int) {
        store.set(level, forKey: LevelGame.levelKey)
        game.storeDidChange(LevelChange(changeNotification(reason, [LevelGame.levelKey])))
    }

    @Test func `level 13 is written again when another device wrote level 1`() {
        game.finish(level: 13)
        receive(1, reason: NSUbiquitousKeyValueStoreServerChange)
        #expect(game.level == 13)
        #expect(store.longLong(forKey: LevelGame.levelKey) == 13)
    }

    @Test func `a higher level of another device is taken over`() {
        game.finish(level: 1)
        receive(13, reason: NSUbiquitousKeyValueStoreInitialSyncChange)
        #expect(game.level == 13)
        game.finish(level: 7)
        #expect(store.object(forKey: LevelGame.levelKey) as? Int == 13)
    }

    @Test func `the level of another account is taken over even if it is lower`() {
        game.finish(level: 13)
        receive(1, reason: NSUbiquitousKeyValueStoreAccountChange)
        #expect(game.level == 1)
    }

    @Test func `other keys and reasons change nothing`() {
        game.finish(level: 13)
        receive(1, reason: NSUbiquitousKeyValueStoreQuotaViolationChange)
        game.storeDidChange(LevelChange(changeNotification(0, ["another"])))
        game.storeDidChange(LevelChange(Notification(name: Notification.Name("another"))))
        #expect(game.level == 13)
        #expect(store.longLong(forKey: LevelGame.levelKey) == 1)
    }

    @Test func `a game can be started and stopped on the default store`() {
        let game = LevelGame(defaults: UserDefaults())
        game.start()
        game.stop()
    }
}

#endif
