// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import Ubiquity

/// A value of one key, and when it became readable on a device that did not write it.
struct Change: Encodable {
    private static let key = "latency.probe"

    var value: String
    var time: Int64

    /// - Returns: The time at which each line was written, just before the call.
    static func write(home: String) throws -> [Int64] {
        let store = try SampleStore.open(home: home)
        var times: [Int64] = []
        while let line = readLine() {
            times.append(nanoseconds())
            store.set(line, forKey: key)
        }
        return times
    }

    /// Until its input ends. A notification comes after the value is readable; so no time is too early.
    static func watch(home: String, _ tell: @escaping @Sendable (Change) -> Void) throws {
        let store = try SampleStore.open(home: home)
        let last = Mutex(store.string(forKey: key))
        let observer = NotificationCenter.default.addObserver(
            forName: UbiquitousKeyValueStore.didChangeExternallyNotification, object: nil,
            queue: nil
        ) { _ in
            last.withLock { last in
                guard let value = store.string(forKey: key), value != last else { return }
                let change = Change(value: value, time: nanoseconds())
                last = value
                tell(change)
            }
        }
        while readLine() != nil {}
        withExtendedLifetime((store, observer)) {}
    }
}
