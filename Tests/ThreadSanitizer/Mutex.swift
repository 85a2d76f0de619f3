// SPDX-License-Identifier: Apache-2.0

// Not Foundation, which uses the module itself that this one stands for.
#if canImport(Darwin)
private import Darwin
#else
private import Glibc
#endif

/// The replacement of `Synchronization.Mutex` in a build for the thread sanitizer, where this
/// module is imported under that name.
///
/// Under contention, the kernel hands over that module's mutex. The sanitizer does not see this,
/// and reports a race for everything that the mutex guards. It does know POSIX's.
public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private final class Storage {
        let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        var value: Value

        init(_ value: consuming Value) {
            self.value = value
            lock.initialize(to: pthread_mutex_t())
            pthread_mutex_init(lock, nil)
        }

        deinit {
            pthread_mutex_destroy(lock)
            lock.deallocate()
        }
    }

    private let storage: Storage

    /// See `Synchronization.Mutex`.
    public init(_ initialValue: consuming sending Value) { storage = Storage(initialValue) }

    /// See `Synchronization.Mutex`.
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(storage.lock)
        defer { pthread_mutex_unlock(storage.lock) }
        return try body(&storage.value)
    }
}
