// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

struct ChangeReaderTests {
    init() { TestHome.use() }

    @Test(arguments: [
        (NSUbiquitousKeyValueStoreServerChange, 0, "another device"),
        (NSUbiquitousKeyValueStoreInitialSyncChange, 1, "first sync"),
        (NSUbiquitousKeyValueStoreQuotaViolationChange, 2, "full"),
        (NSUbiquitousKeyValueStoreAccountChange, 3, "another account"),
    ])
    func `the reason is read as any kind of number`(
        _ reason: Int, _ number: Int, _ sentence: String
    ) {
        let notification = changeNotification(reason, ["a", "b"])
        #expect(ChangeReader.reasonAsInt(notification) == number)
        #expect(ChangeReader.reasonAsNumber(notification) == number)
        #expect(ChangeReader.reasonAsInt64(notification) == Int64(number))
        #expect(ChangeReader.sentence(notification) == sentence)
        #expect(NSUbiquitousKeyValueStore.ChangeReason(notification)?.rawValue == number)
        #expect(ChangeReader.keys(notification) == ["a", "b"])
        #expect(ChangeReader.isOfTheStore(notification))
    }

    @Test func `the names are Apple's`() {
        #expect(
            NSUbiquitousKeyValueStore.didChangeExternallyNotification.rawValue
                == "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
        #expect(
            NSUbiquitousKeyValueStoreChangeReasonKey == "NSUbiquitousKeyValueStoreChangeReasonKey")
        #expect(
            NSUbiquitousKeyValueStoreChangedKeysKey == "NSUbiquitousKeyValueStoreChangedKeysKey")
    }

    @Test func `what changed is copied into the app's defaults`() {
        let store = DictionaryStore()
        store.set(5, forKey: "level")
        store.set("Ada", forKey: "name")
        var defaults: [String: Any] = ["gone": 1, "name": "Bob"]
        ChangeReader.copyChanges(
            changeNotification(NSUbiquitousKeyValueStoreServerChange, ["level", "gone"]),
            from: store, into: &defaults)
        #expect(defaults["level"] as? Int == 5)
        #expect(defaults["gone"] == nil)
        #expect(defaults["name"] as? String == "Bob")
    }

    @Test func `observers of every kind are registered, and gone with their owner`() {
        var observers: ChangeObservers? = ChangeObservers { _, _ in }
        #expect(observers?.count == 4)
        observers = nil
    }
}

#endif
