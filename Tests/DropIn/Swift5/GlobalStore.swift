// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

// The oldest idiom: globals, and functions that use them.

var cloudStore = NSUbiquitousKeyValueStore.default
let kScoreKey = "classic.score"
let kNameKey = "classic.name"
var lastReason = -1
var changedKeys = [String]()

func saveScore(_ score: Int, name: String?) {
    cloudStore.set(score, forKey: kScoreKey)
    cloudStore.set(name, forKey: kNameKey)
    if !cloudStore.synchronize() {
        print("The values are not on the disk, or this app has no store.")
    }
}

func loadScore() -> (score: Int, name: String) {
    let score = cloudStore.object(forKey: kScoreKey) as! Int
    let name = cloudStore.object(forKey: kNameKey) as! String
    return (score, name)
}

func resetScore() {
    cloudStore.set(0, forKey: kScoreKey)
    cloudStore.removeObject(forKey: kNameKey)
    NSUbiquitousKeyValueStore.default.synchronize()
}

func hasStore() -> Bool {
    if let store = cloudStore as NSUbiquitousKeyValueStore? {
        return store === NSUbiquitousKeyValueStore.default
    }
    return false
}

func handleChange(_ notification: Notification) {
    guard let userInfo = notification.userInfo,
        let reason = userInfo[NSUbiquitousKeyValueStoreChangeReasonKey] as? NSNumber
    else { return }
    lastReason = reason.intValue
    if lastReason == NSUbiquitousKeyValueStoreServerChange
        || lastReason == NSUbiquitousKeyValueStoreInitialSyncChange
    {
        changedKeys = userInfo[NSUbiquitousKeyValueStoreChangedKeysKey] as! [String]
    } else if lastReason == NSUbiquitousKeyValueStoreQuotaViolationChange {
        changedKeys = []
    }
}
