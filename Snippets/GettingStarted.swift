// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// snippet.configure
try UbiquitousKeyValueStore.configureDefault(
    UbiquityConfiguration(identifier: "TEAMID.com.example.notes"))
// snippet.end

// snippet.use
let store = UbiquitousKeyValueStore.default
store.set("dark", forKey: "theme")
print("the theme is \(store.string(forKey: "theme") ?? "light")")
// snippet.end

// snippet.register
store.register(defaults: ["theme": "light", "fontSize": 13])
print("\(store.longLong(forKey: "fontSize")) points")  // 13, until a device sets another size
// snippet.end

// snippet.observe
let observer = NotificationCenter.default.addObserver(
    forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: .main
) { notification in
    let keys = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
    print("changed elsewhere: \(keys ?? [])")
}
// snippet.end

// snippet.signIn
func signIn(server: String, code: String) async throws {
    let account = try await UbiquityAccount.signIn(server: server, code: code)
    print("signed in to \(account.name) as \(account.deviceName)")
}
// snippet.end

// snippet.status
func explain(_ status: UbiquityStatus) -> String {
    switch status.connection {
    case .connected, .polling: "synced; \(status.pendingKeys.count) keys wait to be sent"
    case .connecting: "connecting"
    case .waiting: "no connection: \(status.lastError ?? "the reason is not known")"
    case .signedOut: "this device is not signed in"
    case .locked: "this device needs the account's key"
    case .unauthorized: "this device must be signed in again"
    case .notConfigured: "this app has no store identifier"
    }
}
print(explain(store.status))
// snippet.end

// snippet.roundTrip
func closeDocument() async {
    do {
        try await store.synchronizeNow()
    } catch {
        print("it is saved here, and will be sent later: \(error)")
    }
}
// snippet.end

// snippet.hide
if CommandLine.arguments.count == 3 {
    try await signIn(server: CommandLine.arguments[1], code: CommandLine.arguments[2])
    await closeDocument()
}
withExtendedLifetime(observer) {}
