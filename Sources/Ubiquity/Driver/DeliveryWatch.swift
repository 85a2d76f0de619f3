// SPDX-License-Identifier: Apache-2.0

internal import Synchronization
internal import UbiquityCore

/// Asks a server which devices have a store's changes, again and again: at pauses that grow from a
/// second to a minute, and from the beginning when the store changes.
///
/// Shared state: `state`, guarded by its mutex.
final class DeliveryWatch: Sendable {
    private struct State {
        var pauses = Backoff()
        var random: RandomSource
        var isAsking = false
        /// The store has changed since the last question.
        var isStale = false
        var isOver = false
        var cancelWake: (@Sendable () -> Void)?
    }

    private let state: Mutex<State>
    private let queue: any WorkQueue
    private let ask: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameter ask: Asks the server, and calls back.
    init(
        on queue: any WorkQueue, seed: UInt64,
        ask: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.queue = queue
        self.ask = ask
        state = Mutex(State(random: RandomSource(seed: seed)))
    }

    /// Asks now.
    func start() {
        let isFirst = state.withLock { state in
            guard !state.isAsking, !state.isOver else { return false }
            state.isAsking = true
            state.isStale = false
            return true
        }
        if isFirst { ask { [weak self] in self?.plan() } }
    }

    /// The store has changed: asks soon. Changes until then do not put that off.
    func hurry() {
        let mustPlan = state.withLock { state in
            defer { state.isStale = true }
            return !state.isStale && !state.isAsking
        }
        if mustPlan { plan() }
    }

    func end() {
        state.withLock { state in
            state.isOver = true
            state.cancelWake?()
            state.cancelWake = nil
        }
    }

    /// Plans the next question.
    private func plan() {
        state.withLock { state in
            state.isAsking = false
            guard !state.isOver else { return }
            if state.isStale { state.pauses.succeed() }
            let pause = state.pauses.fail(using: &state.random)
            state.cancelWake?()
            state.cancelWake = queue.enqueue(after: pause) { [weak self] in self?.start() }
        }
    }
}
