// SPDX-License-Identifier: Apache-2.0

#if !canImport(Darwin)

import Foundation
import Ubiquity

/// A notification as the store posts it.
public func changeNotification(_ reason: Int, _ keys: [String]) -> Notification {
    Notification(
        name: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
        object: NSUbiquitousKeyValueStore.default,
        userInfo: [
            NSUbiquitousKeyValueStoreChangeReasonKey: NSNumber(value: reason),
            NSUbiquitousKeyValueStoreChangedKeysKey: keys,
        ])
}

#endif
