// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Hands what happens on to those who listen, whoever they are.
///
/// Shared state: `listeners`, by its mutex, which is held for copies only: a listener is called
/// without it.
final class Broadcast<Element: Sendable>: Sendable {
    /// Nil: nothing will follow.
    typealias Listener = @Sendable (Element?) -> Void

    private struct State {
        var listeners: [Int: Listener] = [:]
        var added = 0
        var isOver = false
    }

    private let state = Mutex(State())

    deinit { end() }

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    /// - Returns: Removes the listener.
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

    /// What is sent from now on. A reader that is slower gets the newest `count` of what it missed.
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
