// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// An object that observes as long as it lives, on the main queue, and keeps what it captures
/// without a thought for threads.
class ClassicObserver: NSObject {
    var reasons: [Int] = []
    var keys: [String] = []
    var tokens: [NSObjectProtocol] = []
    var onChange: (([String]) -> Void)?

    func register() {
        let notificationName = NSNotification.Name(
            rawValue: "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
        tokens.append(
            NotificationCenter.default.addObserver(
                forName: notificationName, object: nil, queue: nil,
                using: { (notification) in self.storeDidChange(notification) }))
        tokens.append(
            NotificationCenter.default.addObserver(
                forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification,
                object: NSUbiquitousKeyValueStore.default, queue: OperationQueue.main,
                using: { self.storeDidChange($0) }))
        NSUbiquitousKeyValueStore.default.synchronize()
    }

    func unregister() {
        tokens.forEach { NotificationCenter.default.removeObserver($0) }
        tokens.removeAll()
    }

    func storeDidChange(_ notification: Notification) {
        let reason = notification.userInfo![NSUbiquitousKeyValueStoreChangeReasonKey] as! Int
        let changed = notification.userInfo![NSUbiquitousKeyValueStoreChangedKeysKey] as! [String]
        switch reason {
        case NSUbiquitousKeyValueStoreServerChange,
            NSUbiquitousKeyValueStoreInitialSyncChange,
            NSUbiquitousKeyValueStoreAccountChange:
            keys += changed
        case NSUbiquitousKeyValueStoreQuotaViolationChange:
            print("full: \(changed)")
        default:
            break
        }
        reasons.append(reason)
        onChange?(changed)
    }

    /// As it was written for the dictionary of the Objective-C class.
    func readAsDictionary(_ notification: Notification) -> (reason: Int, keys: [String])? {
        guard let info = notification.userInfo as NSDictionary? else { return nil }
        guard let reason = info[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber,
            let keys = info[NSUbiquitousKeyValueStoreChangedKeysKey] as? NSArray
        else { return nil }
        return (reason.intValue, keys.compactMap { $0 as? String })
    }
}
