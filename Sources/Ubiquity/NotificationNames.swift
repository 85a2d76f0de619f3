// SPDX-License-Identifier: Apache-2.0

public import Foundation

#if !canImport(Darwin)

/// Code written for Apple's class compiles unchanged.
public typealias NSUbiquitousKeyValueStore = UbiquitousKeyValueStore

/// In `userInfo`: why the values changed, one of the four numbers below.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"
/// In `userInfo`: the keys whose values changed, a `[String]`.
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
    /// Posted when values changed by anything but this process's own writes, with the store as
    /// object. The new values can be read before it is posted.
    ///
    /// Posted from a queue of the store's own. An observer that asked for `queue: .main` gets it
    /// there.
    public class var didChangeExternallyNotification: Notification.Name {
        Notification.Name("NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
    }
}
