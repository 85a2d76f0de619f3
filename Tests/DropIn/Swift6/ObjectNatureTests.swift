// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// An app's own kind of thing that can be stored elsewhere, as Objective-C's habits have it.
protocol SettingsBackend: NSObjectProtocol {
    func string(forKey aKey: String) -> String?
}

extension NSUbiquitousKeyValueStore: SettingsBackend {}

@Suite struct `A store is an object as Apple's is` {
    @Test func `it is equal to itself, and can be kept in a set`() {
        TestHome.use()
        let store = NSUbiquitousKeyValueStore.default
        let other = NSUbiquitousKeyValueStore()
        #expect(store == NSUbiquitousKeyValueStore.default)
        #expect(store.isEqual(store))
        #expect(store != other)
        #expect(Set([store, other, store]).count == 2)
    }

    @Test func `it passes for an NSObject and for a protocol that refines its own`() {
        let object: NSObject = NSUbiquitousKeyValueStore()
        #expect(object is NSUbiquitousKeyValueStore)
        let backend: any SettingsBackend = NSUbiquitousKeyValueStore()
        #expect(!backend.isEqual(object))
        #expect(!object.description.isEmpty)
    }
}

#endif
