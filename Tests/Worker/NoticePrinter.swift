// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Prints each change that comes from outside, as the observer finds it.
enum NoticePrinter {
    /// For as long as the process lives.
    static func observe(_ store: UbiquitousKeyValueStore) {
        _ = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { notification in
            let time = MonotonicTime.now
            MessageOutput.print(WorkerMessage.noticed(notice(notification, at: time)))
        }
    }

    private static func notice(
        _ notification: Notification, at time: UInt64
    ) -> WorkerMessage.Notice {
        let info = notification.userInfo ?? [:]
        let keys = info[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
        let store = notification.object as? UbiquitousKeyValueStore
        var values: [String: String] = [:]
        for key in keys { values[key] = store?.string(forKey: key) }
        return WorkerMessage.Notice(
            reason: info[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int, keys: keys,
            values: values, at: time)
    }
}
