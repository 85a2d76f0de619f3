// SPDX-License-Identifier: Apache-2.0

// A file that imports nothing: `Everywhere.swift` does it for the module.

@Observable
final class Preferences: @unchecked Sendable {
    var lastChange = Date.distantPast

    @ObservationIgnored private let store: NSUbiquitousKeyValueStore
    @ObservationIgnored private var token: (any NSObjectProtocol)?

    init(_ store: NSUbiquitousKeyValueStore = .default) {
        self.store = store
        token = NotificationCenter.default.addObserver(
            forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { [weak self] notification in
            let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int
            guard reason != NSUbiquitousKeyValueStoreQuotaViolationChange else { return }
            self?.lastChange = Date()
        }
    }

    var name: String {
        get { store.string(forKey: "preferences.name") ?? "" }
        set { store.set(newValue, forKey: "preferences.name") }
    }

    static var isSignedIn: Bool { FileManager.default.ubiquityIdentityToken != nil }
}
