// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// Passes elements on to any number of listeners.
///
/// Shared state: `listeners`, guarded by its mutex, which is held for copies only: listeners are
/// called without it.
package final class Broadcast<Element: Sendable>: Sendable {
    /// Called with nil at the end.
    package typealias Listener = @Sendable (Element?) -> Void

    private struct State {
        /// Not a dictionary, whose type would have to be instantiated while a store opens.
        var listeners: [(number: Int, listen: Listener)] = []
        var added = 0
        var isOver = false
    }

    private let state = Mutex(State())

    deinit { end() }

    package init() {}

    var hasListeners: Bool { state.withLock { !$0.listeners.isEmpty } }

    /// - Returns: A closure that removes the listener.
    package func add(_ listener: @escaping Listener) -> @Sendable () -> Void {
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.added += 1
            state.listeners.append((state.added, listener))
            return state.added
        }
        guard let number else {
            listener(nil)
            return {}
        }
        return { [weak self] in
            self?.state.withLock { $0.listeners.removeAll { $0.number == number } }
        }
    }

    package func send(_ element: Element) {
        for listener in state.withLock({ $0.listeners }) { listener.listen(element) }
    }

    package func end() {
        let listeners = state.withLock { state in
            defer {
                state.listeners = []
                state.isOver = true
            }
            return state.listeners
        }
        for listener in listeners { listener.listen(nil) }
    }

    /// The elements from now on. A slow reader gets the newest `count` of those it missed.
    ///
    /// - Parameter first: The elements before those.
    package func stream(newest count: Int, first: [Element] = []) -> AsyncStream<Element> {
        AsyncStream(bufferingPolicy: .bufferingNewest(count)) { continuation in
            for element in first { continuation.yield(element) }
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
