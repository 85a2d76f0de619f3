// SPDX-License-Identifier: Apache-2.0

#if UBIQUITY_TSAN

private import Foundation

/// Replaces `Synchronization.Mutex` in builds for the thread sanitizer.
///
/// Under contention, that mutex is handed over by the kernel. The sanitizer does not see this, and
/// reports a race for everything that the mutex guards. It does understand `NSLock`.
package struct SanitizedMutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private final class Storage {
        let lock = NSLock()
        var value: Value

        init(_ value: consuming Value) { self.value = value }
    }

    private let storage: Storage

    package init(_ initialValue: consuming sending Value) { storage = Storage(initialValue) }

    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        storage.lock.lock()
        defer { storage.lock.unlock() }
        return try body(&storage.value)
    }
}

#endif
