// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Ubiquity

/// The keys that this process wrote to a store.
///
/// Several writes that nobody read meanwhile are told together, so it counts no key twice that was
/// written twice in one moment.
final class Traffic: Sendable {
    private final class Box: Sendable {
        let written = Mutex<[String]>([])
    }

    private let box = Box()
    private let reader: Task<Void, Never>

    init(_ store: UbiquitousKeyValueStore) {
        reader = Task { [box, changes = store.changes] in
            for await change in changes where change.origin == .own {
                box.written.withLock { $0 += change.keys }
            }
        }
    }

    var writes: [String] { box.written.withLock(\.self) }

    deinit { reader.cancel() }
}
