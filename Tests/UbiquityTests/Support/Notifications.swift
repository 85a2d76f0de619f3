// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Ubiquity

/// A store's notifications, with the values that an observer reads when it gets them.
///
/// `@unchecked Sendable`: the token is only ever handed back to the centre.
final class Notifications: @unchecked Sendable {
    struct Posted: Equatable {
        var reason: Int
        var keys: [String]
        var values: [String?]
    }

    private let posted: Box
    private let token: any NSObjectProtocol

    private final class Box: Sendable {
        let all = Mutex<[Posted]>([])
    }

    init(of store: UbiquitousKeyValueStore) {
        let box = Box()
        posted = box
        token = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { notification in
            guard let userInfo = notification.userInfo,
                let reason = userInfo[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int,
                let keys = userInfo[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
            else { return }
            let values = keys.map { store.string(forKey: $0) }
            box.all.withLock { $0.append(Posted(reason: reason, keys: keys, values: values)) }
        }
    }

    deinit { NotificationCenter.default.removeObserver(token) }

    var all: [Posted] { posted.all.withLock { $0 } }
}
