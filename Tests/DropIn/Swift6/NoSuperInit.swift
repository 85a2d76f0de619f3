// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity

/// A double whose `init()` does not call the class's: Swift does, for it has one designated one.
final class LoggingStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    private let lock = NSLock()
    private var reads: [String]

    override init() {
        reads = []
    }

    override func object(forKey aKey: String) -> Any? {
        lock.withLock { reads.append(aKey) }
        return super.object(forKey: aKey)
    }

    var log: [String] { lock.withLock { reads } }
}

/// The initialisers are inherited where all designated ones are there.
final class AppStore: NSUbiquitousKeyValueStore, @unchecked Sendable {
    let name = "app"
}
