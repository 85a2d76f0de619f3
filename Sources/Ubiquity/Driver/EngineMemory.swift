// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A store's engine and its driver, as the app's threads and the driver's queue share them.
///
/// Shared state: `state`, all of it, by its mutex, which is held for no longer than the engine thinks.
/// Nothing slow and no call of the app happens meanwhile.
///
/// An object of its own, to which nobody refers weakly: an app's call would have to count references
/// the slow way.
final class EngineMemory: Sendable {
    struct State {
        var driver: Driver
        /// Of round trips that were asked for, by the engine's number. Few, and no dictionary: Swift
        /// would make the type of it while an opening waits.
        var waiters: [(request: Int, continuation: CheckedContinuation<Void, any Error>)] = []

        mutating func takeWaiter(_ request: Int) -> CheckedContinuation<Void, any Error>? {
            waiters.firstIndex { $0.request == request }
                .map { waiters.remove(at: $0).continuation }
        }
    }

    let state: Mutex<State>
    let now: @Sendable () -> ClockReading

    init(_ driver: Driver, now: @escaping @Sendable () -> ClockReading) {
        state = Mutex(State(driver: driver))
        self.now = now
    }

    /// Reads a value. The body must be short.
    @inline(__always)
    func value<Result: Sendable>(
        _ key: Key, _ body: (PropertyListValue) -> Result?
    ) -> Result? {
        state.withLock { $0.driver.engine.value(key).flatMap(body) }
    }

    struct WriteOutcome {
        /// Whether the caller must start a run: there is something to save, or a refusal to tell.
        var mustRun: Bool
        /// Why the write was refused; nil: it was not.
        var violation: LimitViolation?
        /// Keys whose policy could not merge what was written.
        var misfits: Set<Key>
    }

    func write(_ key: Key, _ content: Content) -> WriteOutcome {
        write { engine, now throws(LimitViolation) in try engine.write(key, content, at: now) }
    }

    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) -> WriteOutcome {
        // Read without the lock: two writes of two threads are in either order anyway.
        let now = now()
        return state.withLock { state in
            do throws(LimitViolation) {
                try body(&state.driver.engine, now)
                return WriteOutcome(
                    mustRun: state.driver.schedule(), misfits: state.driver.engine.takeMisfits())
            } catch {
                return WriteOutcome(
                    mustRun: state.driver.schedule(), violation: error,
                    misfits: state.driver.engine.takeMisfits())
            }
        }
    }
}
