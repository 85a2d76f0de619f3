// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// The ways in which apps take a notification apart.
enum ChangeReader {
    static func reasonAsInt(_ notification: Notification) -> Int? {
        notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int
    }

    static func reasonAsNumber(_ notification: Notification) -> Int? {
        (notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber)?.intValue
    }

    static func reasonAsInt64(_ notification: Notification) -> Int64? {
        let number = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber
        return number?.int64Value
    }

    static func keys(_ notification: Notification) -> [String] {
        notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
    }

    static func isOfTheStore(_ notification: Notification) -> Bool {
        (notification.object as? NSUbiquitousKeyValueStore) === NSUbiquitousKeyValueStore.default
            && notification.name == NSUbiquitousKeyValueStore.didChangeExternallyNotification
    }

    static func sentence(_ notification: Notification) -> String {
        switch reasonAsInt(notification) {
        case NSUbiquitousKeyValueStoreServerChange: "another device"
        case NSUbiquitousKeyValueStoreInitialSyncChange: "first sync"
        case NSUbiquitousKeyValueStoreQuotaViolationChange: "full"
        case NSUbiquitousKeyValueStoreAccountChange: "another account"
        case .some(let reason): "reason \(reason)"
        case nil: "no reason"
        }
    }

    /// Copies what changed into the app's defaults.
    static func copyChanges(
        _ notification: Notification, from store: NSUbiquitousKeyValueStore,
        into defaults: inout [String: Any]
    ) {
        guard let reason = reasonAsInt(notification),
            [NSUbiquitousKeyValueStoreServerChange, NSUbiquitousKeyValueStoreInitialSyncChange]
                .contains(reason)
        else { return }
        for key in keys(notification) { defaults[key] = store.object(forKey: key) }
    }
}

extension NSUbiquitousKeyValueStore {
    /// Many apps give the four numbers an enumeration of their own.
    enum ChangeReason: Int {
        case serverChange, initialSyncChange, quotaViolationChange, accountChange

        init?(_ notification: Notification) {
            guard let reason = ChangeReader.reasonAsInt(notification) else { return nil }
            self.init(rawValue: reason)
        }
    }
}
