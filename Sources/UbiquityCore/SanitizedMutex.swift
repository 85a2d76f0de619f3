// SPDX-License-Identifier: Apache-2.0

#if UBIQUITY_TSAN

private import Foundation

/// Stands for `Synchronization.Mutex` in a build for the thread sanitizer, and nowhere else.
///
/// That one is passed on by the kernel where threads contend for it, which the sanitizer does not see:
/// it reports a race for everything that the mutex guards. `NSLock` it knows.
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
