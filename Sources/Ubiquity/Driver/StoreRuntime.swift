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
        let driverQueue = DispatchQueue(label: "ubiquity.driver", qos: .userInitiated)
        driverQueue.setSpecific(key: currentQueue, value: ObjectIdentifier(driverQueue))
        return StoreRuntime(
            driverQueue: driverQueue,
            noticeQueue: DispatchQueue(label: "ubiquity.notices", target: notices),
            now: SystemClock.reading, seed: .random(in: 0 ... .max))
    }
}

/// A serial queue for a store's work.
///
/// A dispatch queue, or a queue in virtual time in a test of an app.
package protocol WorkQueue: AnyObject, Sendable {
    /// Runs the body later.
    func enqueue(_ body: @escaping @Sendable () -> Void)

    /// Runs the body now, after everything enqueued before. On the queue itself, where an app's own
    /// merge rule may call, it runs at once.
    func perform<Result>(_ body: () throws -> Result) rethrows -> Result

    /// Runs the body after this many milliseconds.
    /// - Returns: A closure that cancels it, unless it is already running.
    func enqueue(
        after milliseconds: Int64, _ body: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void

    /// Says that a caller waits for something that takes time. Virtual time advances until it is
    /// done; real time needs no help.
    /// - Parameter isDone: Nil if it may never be done. Time then advances until everything has
    ///   settled.
    /// - Returns: False if no more work will be done on this queue.
    @discardableResult
    func isAwaited(until isDone: (@Sendable () -> Bool)?) -> Bool
}

/// The driver's queue that a thread is on.
private let currentQueue = DispatchSpecificKey<ObjectIdentifier>()

extension DispatchQueue: WorkQueue {
    package func enqueue(_ body: @escaping @Sendable () -> Void) { async(execute: body) }

    package func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
        if DispatchQueue.getSpecific(key: currentQueue) == ObjectIdentifier(self) {
            return try body()
        }
        return try sync(execute: body)
    }

    package func enqueue(
        after milliseconds: Int64, _ body: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void {
        let timer = Timer(queue: self, milliseconds: milliseconds, body)
        return { timer.source.cancel() }
    }

    package func isAwaited(until isDone: (@Sendable () -> Bool)?) -> Bool { true }
}

/// `@unchecked Sendable` because a running timer is only ever cancelled, which the system allows on
/// any thread.
private struct Timer: @unchecked Sendable {
    let source: any DispatchSourceTimer

    init(queue: DispatchQueue, milliseconds: Int64, _ body: @escaping @Sendable () -> Void) {
        source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + .milliseconds(Int(milliseconds)))
        source.setEventHandler(handler: body)
        source.resume()
    }
}
