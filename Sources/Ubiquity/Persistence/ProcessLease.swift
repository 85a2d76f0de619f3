// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// The right to hold a store's connection to the server: one holder at a time in the whole system.
///
/// A lease is acquired at most once. It is released by ``close()`` or the death of the process,
/// `kill -9` included, and the next in line has it at once, without polling.
///
/// Shared state:
/// - `phase`: the state of the lease. Guarded by a mutex, because the waiting thread, the owner and
///   `close()` all use it. Never held while a thread waits for the file.
/// - `lock`: the open file. Its calls are the kernel's and need no guard. It is closed when both
///   the owner and the waiting thread have released this object.
package final class ProcessLease: Sendable {
    private enum Phase {
        /// Becomes `waiting`, `held` or `closed`.
        case idle
        /// A thread blocks in the kernel. Becomes `held` or `closed`.
        case waiting
        /// Becomes `closed`.
        case held
        case closed
    }

    private let phase = Mutex(Phase.idle)
    private let lock: FileLock

    /// The file whose lock is the lease of the store at `path`.
    package static func path(ofStore path: String) -> String { path + ".lease" }

    /// Opens the lock without acquiring it.
    /// - Parameter path: The file to lock, which is created if needed.
    /// - Throws: ``SystemError`` if the file cannot be opened.
    package init(path: String) throws(SystemError) { lock = try FileLock(path: path) }

    deinit { close() }

    /// Acquires the lease if possible, without waiting.
    /// - Returns: Whether the lease is now held. False also after ``close()``, and while a thread
    ///   of ``whenAcquired(_:)`` waits.
    package func tryAcquire() -> Bool {
        phase.withLock { phase in
            switch phase {
            case .held: return true
            case .waiting, .closed: return false
            case .idle:
                guard lock.tryLock() else { return false }
                phase = .held
                return true
            }
        }
    }

    /// Calls `body` once when the lease is held, on a thread of its own, or at once if it is held
    /// already. Never calls it if ``close()`` comes first.
    ///
    /// That thread blocks in the kernel until then, at no other cost. Call this once.
    package func whenAcquired(_ body: @escaping @Sendable () -> Void) {
        phase.withLock { phase in
            precondition(phase != .waiting, "Somebody is already waiting for the lease.")
            if phase == .idle { phase = .waiting }
        }
        let thread = Thread { [self] in
            if waitForLock() { body() }
        }
        thread.name = "ubiquity.lease"
        thread.stackSize = Self.stackBytes
        thread.start()
    }

    /// Releases the lease for good. A thread that still waits stays in the kernel until it gets the
    /// lock, and releases it at once.
    package func close() {
        phase.withLock { phase in
            if phase == .held { lock.unlock() }
            phase = .closed
        }
    }

    private func waitForLock() -> Bool {
        let before = phase.withLock { $0 }
        guard before == .waiting, (try? lock.lock()) != nil else { return before == .held }
        return phase.withLock { phase in
            guard phase == .waiting else {
                lock.unlock()
                return false
            }
            phase = .held
            return true
        }
    }

    /// Enough for the handler; the default of 8 MB would look like a leak.
    private static let stackBytes = 512 * 1_024
}
