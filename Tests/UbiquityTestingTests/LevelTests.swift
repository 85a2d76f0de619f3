// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Ubiquity
import UbiquityTesting

@Suite("Level 13 against level 1")
struct LevelTests {
    /// A game that handles notifications as every tutorial's game does.
    private final class Game: Sendable {
        private let store: UbiquitousKeyValueStore
        private let defaults: Int64

        init(_ store: UbiquitousKeyValueStore, reached level: Int64) {
            self.store = store
            defaults = level
            store.set(level, forKey: "level")
            _ = NotificationCenter.default.addObserver(
                forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
                queue: nil
            ) { [self] _ in
                guard store.longLong(forKey: "level") < defaults else { return }
                store.set(defaults, forKey: "level")
                store.synchronize()
            }
        }
    }

    @Test func `ends at 13 on both devices`() {
        let two = TwoDevices()
        two.laptop.goOffline()
        let game = Game(two.a, reached: 13)
        two.cloud.settle()
        two.b.set(Int64(1), forKey: "level")
        two.laptop.goOnline()
        two.cloud.settle()
        #expect(two.a.longLong(forKey: "level") == 13)
        #expect(two.b.longLong(forKey: "level") == 13)
        // Its 1 won for a moment, and both were told.
        #expect(two.phone.notifications.map(\.changedKeys) == [["level"]])
        #expect(two.laptop.notifications.map(\.changedKeys) == [["level"]])
        withExtendedLifetime(game) {}
    }
}
