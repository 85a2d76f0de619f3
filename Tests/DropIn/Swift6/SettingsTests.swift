// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

@MainActor
struct SettingsTests {
    init() { TestHome.use() }

    @Test func `settings start with their defaults and are there for the next object`() {
        let store = DictionaryStore()
        let settings = Settings(store: store)
        #expect(settings.userName == "Nobody")
        #expect(settings.isSoundOn)
        settings.userName = "Ada"
        settings.isSoundOn = false
        settings.volume = 0.75
        settings.launches += 1
        settings.lastLaunch = Date(timeIntervalSinceReferenceDate: 1.5)
        let next = Settings(store: store)
        #expect(next.userName == "Ada")
        #expect(!next.isSoundOn)
        #expect(next.volume == 0.75)
        #expect(next.launches == 1)
        #expect(next.lastLaunch == Date(timeIntervalSinceReferenceDate: 1.5))
        next.lastLaunch = nil
        #expect(store.object(forKey: "lastLaunch") == nil)
    }

    @Test func `the settings that another device changed are read again`() {
        let store = DictionaryStore()
        let settings = Settings(store: store)
        store.set("Bob", forKey: "userName")
        store.set(0.5, forKey: "volume")
        settings.reload(["userName", "unknown"])
        #expect(settings.userName == "Bob")
        #expect(settings.volume == 0)
    }

    @Test func `the shared settings watch the default store`() {
        let settings = Settings.shared
        settings.watch()
        settings.userName = "Shared"
        settings.stop()
        #expect(NSUbiquitousKeyValueStore.default.string(forKey: "userName") == "Shared")
        #expect(NSUbiquitousKeyValueStore.shared === NSUbiquitousKeyValueStore.default)
    }
}

#endif
