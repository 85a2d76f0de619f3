// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A double whose `init()` does not call the class's: Swift does, for it has one designated one.
class CountingStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    var values: [String: Any]
    var writes = 0

    override init() {
        values = ["classic.first": 1]
    }

    convenience init(values: [String: Any]) {
        self.init()
        self.values = values
    }

    override func object(forKey aKey: String) -> Any? { return values[aKey] }

    override func set(_ anObject: Any?, forKey aKey: String) {
        values[aKey] = anObject
        writes += 1
    }
}
