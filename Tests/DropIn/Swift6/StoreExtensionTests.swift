// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

struct StoreExtensionTests {
    private let store: NSUbiquitousKeyValueStore

    init() {
        TestHome.use()
        store = .default
    }

    @Test func `models are stored as data`() throws {
        let player = Player(name: "Ada", scores: [1, 2], joined: .distantPast)
        try store.encode([player], forKey: "extension.players")
        #expect(try store.decode([Player].self, forKey: "extension.players") == [player])
        #expect(try store.decode([Player].self, forKey: "extension.none") == nil)
        #expect(throws: DecodingError.self) {
            try store.decode(String.self, forKey: "extension.players")
        }
    }

    @Test func `an app's own setter is preferred to the setter for any value`() {
        let address = URL(fileURLWithPath: "/tmp")
        store.set(address, forKey: "extension.url")
        #expect(store.url(forKey: "extension.url") == address)
        #expect(store.object(forKey: "extension.url") as? String == address.absoluteString)
    }

    @Test func `an app's own properties and methods read and write`() {
        store.launchCount += 1
        store.launchCount += 1
        #expect(store.integer(forKey: "launchCount") == 2)
        store.set(1, forKey: "extension.cache.a")
        store.set(2, forKey: "extension.cache.b")
        store.removeAll(withPrefix: "extension.cache.")
        #expect(!store.contains("extension.cache.a") && !store.contains("extension.cache.b"))
        #expect(store.contains("launchCount"))
    }
}

#endif
