// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
package import UbiquityCore

/// Where and when a store's work is done, and what chance gives it: the system's, or in a test of an
/// app what the test says.
package struct StoreRuntime: Sendable {
    package var driverQueue: any WorkQueue
    /// Where the app is told.
    package var noticeQueue: any WorkQueue
    package var now: @Sendable () -> ClockReading
    /// Any number that no other process of the device has.
    package var seed: UInt64

    package init(
        driverQueue: any WorkQueue, noticeQueue: any WorkQueue,
        now: @escaping @Sendable () -> ClockReading, seed: UInt64
    ) {
        self.driverQueue = driverQueue
        self.noticeQueue = noticeQueue
        self.now = now
        self.seed = seed
    }

    /// - Parameter notices: Where the app wants to be told; nil: on a queue of the store's own.
    static func system(notices: DispatchQueue?) -> StoreRuntime {
        StoreRuntime(
            driverQueue: DispatchQueue(label: "ubiquity.driver", qos: .userInitiated),
            noticeQueue: DispatchQueue(label: "ubiquity.notices", target: notices),
            now: SystemClock.reading, seed: .random(in: 0 ... .max))
    }
}
