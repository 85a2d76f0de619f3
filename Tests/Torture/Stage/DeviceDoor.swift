// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Keeps apps from running on a device while its folder is copied.
///
/// Shared state, guarded by one mutex: whether it is open, and how many apps are inside; each app's driver
/// enters and leaves, and another one closes it.
final class DeviceDoor: Sendable {
    private struct State {
        var isOpen: Bool
        var wasOpen: Bool
        var inside = 0
    }

    private let state: Mutex<State>

    /// - Parameter isOpen: False: there is no device yet.
    init(isOpen: Bool) { state = Mutex(State(isOpen: isOpen, wasOpen: isOpen)) }

    /// Whether there was a device ever.
    var wasOpen: Bool { state.withLock(\.wasOpen) }

    /// Whether nobody is inside.
    var isEmpty: Bool { state.withLock { $0.inside == 0 } }

    func open() { state.withLock { ($0.isOpen, $0.wasOpen) = (true, true) } }

    /// Closes the door. Apps that are inside should leave soon.
    func close() { state.withLock { $0.isOpen = false } }

    var isOpen: Bool { state.withLock(\.isOpen) }

    /// - Returns: False if it is closed.
    func enter() -> Bool {
        state.withLock { state in
            if state.isOpen { state.inside += 1 }
            return state.isOpen
        }
    }

    func leave() { state.withLock { $0.inside -= 1 } }
}
