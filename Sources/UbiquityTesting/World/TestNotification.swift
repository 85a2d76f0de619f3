// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import Ubiquity

/// A `didChangeExternallyNotification` that a store of a ``TestDevice`` posted.
public struct TestNotification: Hashable, Sendable {
    /// `NSUbiquitousKeyValueStoreServerChange` or one of the other reasons.
    public var reason: Int
    /// The keys whose values changed, sorted.
    public var changedKeys: [String]
    /// The identifier of the store that posted it.
    public var store: String
    /// The name of the process that received it.
    public var process: String
    /// The time by the cloud's clock.
    public var date: Date

    init(_ notification: Notification, process: String, store: String, date: Date) {
        let userInfo = notification.userInfo
        reason = userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int ?? -1
        changedKeys = userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String] ?? []
        self.store = store
        self.process = process
        self.date = date
    }
}
