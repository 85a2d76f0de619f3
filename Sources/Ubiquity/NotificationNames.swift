// SPDX-License-Identifier: Apache-2.0

public import Foundation

#if !canImport(Darwin)

/// Lets code written for Apple's class compile unchanged.
public typealias NSUbiquitousKeyValueStore = UbiquitousKeyValueStore

/// The key in `userInfo` for the reason of the change, one of the four numbers below.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"
/// The key in `userInfo` for the keys whose values changed, a `[String]`.
public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"
/// Another device, or another process of this one, changed values.
public let NSUbiquitousKeyValueStoreServerChange = 0
/// The first download from the server changed values.
public let NSUbiquitousKeyValueStoreInitialSyncChange = 1
/// A write was refused because the store is full.
public let NSUbiquitousKeyValueStoreQuotaViolationChange = 2
/// The account of this device changed.
public let NSUbiquitousKeyValueStoreAccountChange = 3

#endif

extension UbiquitousKeyValueStore {
    /// Posted with the store as object when values changed by anything but this process's own
    /// writes. The new values can be read before it is posted.
    ///
    /// Posted on a queue of the store's own. An observer registered with `queue: .main` is called
    /// there.
    public class var didChangeExternallyNotification: Notification.Name {
        Notification.Name("NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
    }
}
