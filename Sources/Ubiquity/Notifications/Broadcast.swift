// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Passes elements on to any number of listeners.
///
/// Shared state: `listeners`, guarded by its mutex, which is held for copies only: listeners are
/// called without it.
final class Broadcast<Element: Sendable>: Sendable {
    /// Called with nil at the end.
    typealias Listener = @Sendable (Element?) -> Void

    private struct State {
        var listeners: [Int: Listener] = [:]
        var added = 0
        var isOver = false
    }

    private let state = Mutex(State())

    deinit { end() }

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    /// - Returns: A closure that removes the listener.
    func add(_ listener: @escaping Listener) -> @Sendable () -> Void {
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.added += 1
            state.listeners[state.added] = listener
            return state.added
        }
        guard let number else {
            listener(nil)
            return {}
        }
        return { [weak self] in self?.state.withLock { $0.listeners[number] = nil } }
    }

    func send(_ element: Element) {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener(element) }
    }

    func end() {
        let listeners = state.withLock { state in
            defer {
                state.listeners = [:]
                state.isOver = true
            }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener(nil) }
    }

    /// The elements from now on. A slow reader gets the newest `count` of those it missed.
    func stream(newest count: Int, first: Element? = nil) -> AsyncStream<Element> {
        AsyncStream(bufferingPolicy: .bufferingNewest(count)) { continuation in
            if let first { continuation.yield(first) }
            let remove = add { element in
                if let element {
                    continuation.yield(element)
                } else {
                    continuation.finish()
                }
            }
            continuation.onTermination = { _ in remove() }
        }
    }
}
