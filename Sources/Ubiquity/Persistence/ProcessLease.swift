// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Synchronization

/// The right to lead a store's connection to the server: one holder at a time in the whole system.
///
/// A lease is acquired at most once and given up by ``close()`` or by the death of the process,
/// `kill -9` included; the next in line has it at once, without polling.
///
/// Shared state:
/// - `phase`: where the lease stands. Guarded by a mutex, because the thread that waits, the owner
///   and `close()` meet there. Never held while a thread waits for the file.
/// - `lock`: the open file. Its calls are the kernel's and need no guard; it is closed when the
///   last of the owner and the waiting thread lets go of this object.
package final class ProcessLease: Sendable {
    private enum Phase {
        /// To `waiting`, `held` or `closed`.
        case idle
        /// A thread blocks in the kernel. To `held` or `closed`.
        case waiting
        /// To `closed`.
        case held
        case closed
    }

    private let phase = Mutex(Phase.idle)
    private let lock: FileLock

    /// The file by which a store is led, beside the store's own.
    package static func path(ofStore path: String) -> String { path + ".lease" }

    /// Nothing is acquired yet.
    /// - Parameter path: The file to lock, which is made if need be.
    /// - Throws: ``SystemError`` if the file cannot be opened.
    package init(path: String) throws(SystemError) { lock = try FileLock(path: path) }

    deinit { close() }

    /// Never waits.
    /// - Returns: Whether the lease is held now. False also after ``close()``, and while a thread
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

    /// Calls `body` once when the lease is held, on a thread of its own; at once if it is held
    /// already. Never, if ``close()`` comes first.
    ///
    /// That thread blocks in the kernel until then and costs nothing else. To be called once.
    package func whenAcquired(_ body: @escaping @Sendable () -> Void) {
        phase.withLock { phase in
            precondition(phase != .waiting, "The lease is being waited for already.")
            if phase == .idle { phase = .waiting }
        }
        let thread = Thread { [self] in
            if waitForLock() { body() }
        }
        thread.name = "ubiquity.lease"
        thread.stackSize = Self.stackBytes
        thread.start()
    }

    /// Gives the lease up, for good. A thread that still waits stays in the kernel until the
    /// lock comes to it, and passes it on that moment.
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

    /// Enough for the handler; a default of 8 MB would look like a leak.
    private static let stackBytes = 512 * 1_024
}
