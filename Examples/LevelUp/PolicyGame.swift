// SPDX-License-Identifier: Apache-2.0

import Foundation
import Ubiquity
import UbiquityDefaults

/// The same level, as preferences that are mirrored. That the highest level wins is declared once, and
/// true on every device, whether the app runs there or not.
@MainActor
final class PolicyGame {
    private let mirror: DefaultsMirror

    static let key = "bestLevel"

    init(_ store: UbiquitousKeyValueStore, _ preferences: DefaultsDomain) throws {
        mirror = try DefaultsMirror(preferences, store, keys: [.key(Self.key, .maximum)])
    }

    /// The level that this device knows.
    var level: Int { mirror.defaults.integer(forKey: Self.key) }
    /// The level in the store.
    var levelInStore: Int { Int(mirror.store.longLong(forKey: Self.key)) }

    func finish(level finished: Int) {
        mirror.set(max(finished, level), forKey: Self.key)
    }
}
