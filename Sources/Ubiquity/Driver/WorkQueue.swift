// SPDX-License-Identifier: Apache-2.0

internal import Dispatch

/// Where a store's work is done: one piece after the other, in the order in which it came.
///
/// A dispatch queue, or in a test of an app a queue in virtual time.
package protocol WorkQueue: AnyObject, Sendable {
    /// Does it later.
    func enqueue(_ body: @escaping @Sendable () -> Void)

    /// Does it now, when all that came before is done.
    func perform<Result>(_ body: () throws -> Result) rethrows -> Result

    /// Does it after so many milliseconds.
    /// - Returns: Takes it back, unless it is being done.
    func enqueue(
        after milliseconds: Int64, _ body: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void

    /// Somebody waits for something that takes time. Virtual time passes until it is done, without
    /// the caller; real time needs nobody's help.
    /// - Parameter isDone: Nil: maybe never, and time passes until all has settled.
    /// - Returns: False if nothing will be done here any more.
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

/// `@unchecked Sendable`: all that is done with it once it runs is to cancel it, which the system lets
/// any thread do.
private struct Timer: @unchecked Sendable {
    let source: any DispatchSourceTimer

    init(queue: DispatchQueue, milliseconds: Int64, _ body: @escaping @Sendable () -> Void) {
        source = DispatchSource.makeTimerSource(queue: queue)
        source.schedule(deadline: .now() + .milliseconds(Int(milliseconds)))
        source.setEventHandler(handler: body)
        source.resume()
    }
}
