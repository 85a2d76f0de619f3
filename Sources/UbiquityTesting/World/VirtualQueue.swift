// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization
internal import Ubiquity
internal import UbiquitySimulation

/// A queue whose work is done when the world advances.
///
/// Shared state: `state`, guarded by its mutex, which is only held for copies.
final class VirtualQueue: WorkQueue, @unchecked Sendable {
    private enum Life {
        /// Becomes one of the other two.
        case running
        case killed
        /// The test is over.
        case over
    }

    private struct State {
        var waiting: [@Sendable () -> Void] = []
        var life = Life.running
    }

    private let world: TestWorld
    /// The owner's name, for error messages.
    private let owner: String
    /// Whether the app's code runs here, which must not run in the world's turn.
    private let isForNotices: Bool
    private let state = Mutex(State())

    init(_ world: TestWorld, owner: String, isForNotices: Bool = false) {
        self.world = world
        self.owner = owner
        self.isForNotices = isForNotices
    }

    func enqueue(_ body: @escaping @Sendable () -> Void) {
        let life = state.withLock { state in
            if state.life == .running { state.waiting.append(body) }
            return state.life
        }
        switch life {
        case .running: plan()
        case .killed: stop()
        case .over: break
        }
    }

    private func stop() -> Never {
        fatalError("A store was used after \(owner) had ended. Open it again, and use that one.")
    }

    private func plan() {
        world.after(0) { [self] in
            if isForNotices {
                world.doOutside { self.doNext() }
            } else {
                doNext()
            }
        }
    }

    func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
        if state.withLock({ $0.life }) == .killed { stop() }
        return try world.inTurn {
            while doNext() {}
            return try body()
        }
    }

    @discardableResult
    private func doNext() -> Bool {
        let next = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        next?()
        return next != nil
    }

    func enqueue(
        after milliseconds: Int64, _ body: @escaping @Sendable () -> Void
    ) -> @Sendable () -> Void {
        let isCancelled = Mutex(false)
        world.wake(after: milliseconds) { [self] in
            if !isCancelled.withLock(\.self), state.withLock({ $0.life }) == .running { body() }
        }
        return { isCancelled.withLock { $0 = true } }
    }

    func isAwaited(until isDone: (@Sendable () -> Bool)?) -> Bool {
        guard state.withLock({ $0.life }) == .running else { return false }
        // Not on the caller's thread, which may be the main actor's.
        Task.detached { [world, owner] in
            if let trouble = isDone.map(world.pass) ?? world.settle() {
                fatalError("\(owner) waited for an hour of the cloud's time: \(trouble).")
            }
        }
        return true
    }

    /// Discards all waiting work.
    /// - Parameter isTest: Whether the test is over; if not, the process is.
    func end(isTest: Bool) {
        state.withLock { state in
            state.waiting = []
            state.life = isTest ? .over : .killed
        }
    }
}
