// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// A store's engine, as the app's threads and the driver's queue share it.
///
/// Shared state: `state`, all of it, by its mutex, which is held for no longer than the engine thinks.
/// Nothing slow and no call of the app happens meanwhile.
///
/// An object of its own, to which nobody refers weakly: an app's call would have to count references
/// the slow way.
final class EngineMemory: Sendable {
    struct State {
        var engine: SyncEngine
        var isDrainScheduled = false
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]

        /// - Returns: Whether the caller must schedule a drain.
        mutating func scheduleDrain() -> Bool {
            defer { isDrainScheduled = true }
            return !isDrainScheduled
        }
    }

    let state: Mutex<State>
    let now: @Sendable () -> ClockReading

    init(_ engine: SyncEngine, now: @escaping @Sendable () -> ClockReading) {
        state = Mutex(State(engine: engine))
        self.now = now
    }

    /// Reads a value. The body must be short.
    @inline(__always)
    func value<Result: Sendable>(
        _ key: Key, _ body: (PropertyListValue) -> Result?
    ) -> Result? {
        state.withLock { $0.engine.value(key).flatMap(body) }
    }

    /// - Returns: Whether the caller must schedule a drain.
    func write(_ key: Key, _ content: Content) throws(LimitViolation) -> Bool {
        try write { engine, now throws(LimitViolation) in try engine.write(key, content, at: now) }
    }

    /// - Returns: Whether the caller must schedule a drain.
    func write(
        _ body: (inout SyncEngine, ClockReading) throws(LimitViolation) -> Void
    ) throws(LimitViolation) -> Bool {
        // Read without the lock: two writes of two threads are in either order anyway.
        let now = now()
        let result = state.withLock { state -> Swift.Result<Bool, LimitViolation> in
            do throws(LimitViolation) {
                try body(&state.engine, now)
                return .success(state.scheduleDrain())
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
