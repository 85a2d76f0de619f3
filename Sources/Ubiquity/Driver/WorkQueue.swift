// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// A serial queue for a store's work.
///
/// A dispatch queue, or a queue in virtual time in a test of an app.
package protocol WorkQueue: AnyObject, Sendable {
    /// Runs the body later.
    func enqueue(_ body: @escaping @Sendable () -> Void)

    /// Runs the body now, after everything enqueued before.
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

extension DispatchQueue: WorkQueue {
    package func enqueue(_ body: @escaping @Sendable () -> Void) { async(execute: body) }

    package func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
        try sync(execute: body)
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
