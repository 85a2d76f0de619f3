// SPDX-License-Identifier: Apache-2.0

internal import Foundation

#if !canImport(Darwin)

/// The key in `userInfo` for the reason of the change, one of the four numbers below.
public let NSUbiquitousKeyValueStoreChangeReasonKey = "NSUbiquitousKeyValueStoreChangeReasonKey"
/// The key in `userInfo` for the keys whose values changed, a `[String]`.
public let NSUbiquitousKeyValueStoreChangedKeysKey = "NSUbiquitousKeyValueStoreChangedKeysKey"
/// Another device, or another process of this one, changed values.
public let NSUbiquitousKeyValueStoreServerChange = 0
/// The first download from the server changed values.
public let NSUbiquitousKeyValueStoreInitialSyncChange = 1
/// A write was refused because it exceeds a limit, such as that of the whole store.
public let NSUbiquitousKeyValueStoreQuotaViolationChange = 2
/// The account of this device changed.
public let NSUbiquitousKeyValueStoreAccountChange = 3

#endif

extension Notification.Name {
    /// See ``UbiquitousKeyValueStore/didChangeExternallyNotification``.
    static let storeDidChangeExternally = Notification.Name(
        "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
}
