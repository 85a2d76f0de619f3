// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
package import Ubiquity
package import UbiquityCore

/// An app's observer of its store: the notifications it gets, and the values it then finds.
///
/// It observes the store as the notification's object: what another object posts it does not get.
/// `@unchecked Sendable`: the token is only ever handed back to the centre.
package final class Observer: @unchecked Sendable {
    package struct Posted: Equatable, Sendable {
        /// As existing code casts it, to one or the other.
        package var reason: Int?
        package var reasonNumber: Int?
        package var keys: [String]?
        /// The values that the store has for these keys.
        package var values: [String: PropertyListValue]
    }

    private let posted = Mutex<[Posted]>([])
    private var token: (any NSObjectProtocol)?

    /// - Parameter react: What the app does then.
    package init(
        _ store: UbiquitousKeyValueStore, react: @escaping @Sendable (Posted) -> Void = { _ in }
    ) {
        token = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
            queue: nil
        ) { [weak self] notification in
            let posted = Posted(notification, store)
            self?.posted.withLock { $0.append(posted) }
            react(posted)
        }
    }

    deinit { if let token { NotificationCenter.default.removeObserver(token) } }

    package var all: [Posted] { posted.withLock(\.self) }
}

extension Observer.Posted {
    fileprivate init(_ notification: Notification, _ store: UbiquitousKeyValueStore) {
        let info = notification.userInfo
        reason = info?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int
        reasonNumber = (info?[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber)?.intValue
        keys = info?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String]
        values = [:]
        for key in keys ?? [] { values[key] = store.value(key) }
    }

    /// Creates an expected notification.
    package init(_ reason: Int, _ keys: [String], _ values: [String: PropertyListValue]) {
        self.reason = reason
        reasonNumber = reason
        self.keys = keys
        self.values = values
    }
}
