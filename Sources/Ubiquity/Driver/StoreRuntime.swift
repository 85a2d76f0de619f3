// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
package import UbiquityCore

/// The queues, clock and random seed of a store: the system's, or a test's own.
package struct StoreRuntime: Sendable {
    package var driverQueue: any WorkQueue
    /// The queue on which the app is notified.
    package var noticeQueue: any WorkQueue
    package var now: @Sendable () -> ClockReading
    /// A number that no other process of the device has.
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

    /// - Parameter notices: The queue on which the app wants to be notified; nil for a queue of the
    ///   store's own.
    static func system(notices: DispatchQueue?) -> StoreRuntime {
        StoreRuntime(
            driverQueue: DispatchQueue(label: "ubiquity.driver", qos: .userInitiated),
            noticeQueue: DispatchQueue(label: "ubiquity.notices", target: notices),
            now: SystemClock.reading, seed: .random(in: 0 ... .max))
    }
}
