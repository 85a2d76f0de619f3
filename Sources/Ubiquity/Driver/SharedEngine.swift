// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A store's engine and its driver, shared by the app's threads and the driver's queue.
///
/// Shared state: `state`, guarded by its mutex, which is only held while the engine computes. No
/// slow operation and no callback of the app runs meanwhile.
///
/// An object of its own without weak references, which would make each call of the app count
/// references the slow way.
final class SharedEngine: Sendable {
    struct State {
        var driver: Driver
        /// The waiting callers of round trips, by the engine's number. There are few, and a
        /// dictionary's type would have to be instantiated while a store opens.
        var waiters: [(request: Int, continuation: CheckedContinuation<Void, any Error>)] = []
        private(set) var questions = 0

        /// A number for a caller who waits for something beside the sync. The engine's are
        /// positive.
        mutating func newQuestion() -> Int {
            questions -= 1
            return questions
        }

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
        /// Whether the caller must start a run: there is something to save, or a refusal to report.
        var mustRun: Bool
        /// The reason the write was refused; nil if it was not.
        var violation: LimitViolation?
        /// The keys whose policy could not merge the written value.
        var misfits: Set<Key>

        /// Whether values wait for the app's own rule.
        var hasConflict: Bool

        /// Whether nothing is left to do, as in a burst of writes.
        var isComplete: Bool { !mustRun && violation == nil && misfits.isEmpty && !hasConflict }
    }

    func write(_ key: Key, _ content: Content) -> WriteOutcome {
        write { engine, now throws(LimitViolation) in try engine.write(key, content, at: now) }
    }

    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) -> WriteOutcome {
        // Read without the lock: two writes of two threads have no defined order anyway.
        let now = now()
        return state.withLock { state in
            var violation: LimitViolation?
            do throws(LimitViolation) { try body(&state.driver.engine, now) } catch {
                violation = error
            }
            return WriteOutcome(
                mustRun: state.driver.schedule(), violation: violation,
                misfits: state.driver.engine.takeMisfits(),
                hasConflict: state.driver.engine.hasConflict)
        }
    }
}
