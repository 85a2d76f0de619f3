// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// Overrides what the code under test happens to call.
class PartialStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    var storage: [String: Any] = [:]
    var synchronizeCount = 0

    override func data(forKey aKey: String) -> Data? {
        return storage[aKey] as? Data
    }

    override func set(_ anObject: Any?, forKey aKey: String) {
        storage[aKey] = anObject
    }

    override func synchronize() -> Bool {
        synchronizeCount += 1
        return true
    }
}

/// Overrides a typed pair alone.
class DataStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    var storage: [String: Data] = [:]

    override func data(forKey aKey: String) -> Data? { return storage[aKey] }
    override func set(_ aData: Data?, forKey aKey: String) { storage[aKey] = aData }
}
