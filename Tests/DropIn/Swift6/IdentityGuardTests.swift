// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import DropInSupport
import Foundation
import Testing
import Ubiquity

/// On a device that was never signed in.
@MainActor
struct IdentityGuardTests {
    init() { TestHome.use() }

    @Test func `without an account an app keeps to its defaults`() throws {
        let identity = IdentityGuard()
        let defaults = try #require(UserDefaults(suiteName: "identity-" + UUID().uuidString))
        identity.start()
        defer { identity.stop() }
        #expect(!identity.isSignedIn && identity.store == nil)
        #expect(!identity.save("text", forKey: "identity.text", defaults: defaults))
        #expect(defaults.string(forKey: "identity.text") == "text")
        #expect(NSUbiquitousKeyValueStore.default.object(forKey: "identity.text") == nil)
        #expect(try identity.archivedToken() == nil)
        identity.identityDidChange()
        #expect(identity.changes == 0)
    }

    @Test func `the notification has Apple's name`() {
        #expect(
            Notification.Name.NSUbiquityIdentityDidChange.rawValue
                == "NSUbiquityIdentityDidChangeNotification")
    }
}

#endif
