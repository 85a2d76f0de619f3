// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Ubiquity
import UbiquityDefaults

/// An app that counts in its preferences, which a mirror carries.
package struct CountingApp {
    private let mirror: DefaultsMirror

    /// Of all apps that mirror it.
    package static let key = "count"

    package init(_ store: UbiquitousKeyValueStore) throws {
        mirror = try DefaultsMirror(.standard, store, keys: [.key(Self.key, .counter)])
    }

    private var count: Int { mirror.defaults.integer(forKey: Self.key) }

    /// Until its input ends, or it is killed.
    func run() async throws {
        MessageOutput.print(WorkerMessage.ready)
        while readLine() != nil {
            MessageOutput.print(WorkerMessage.attempting)
            mirror.set(count + 1, forKey: Self.key)
            await mirror.updateNow()
            MessageOutput.print(WorkerMessage.acknowledged)
        }
    }
}
