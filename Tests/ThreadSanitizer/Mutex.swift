// SPDX-License-Identifier: Apache-2.0

private import Foundation

/// The replacement of `Synchronization.Mutex` in a build for the thread sanitizer, where this
/// module is imported under that name.
///
/// Under contention, the kernel hands over that module's mutex. The sanitizer does not see this,
/// and reports a race for everything that the mutex guards. It does know `NSLock`.
public struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private final class Storage {
        let lock = NSLock()
        var value: Value

        init(_ value: consuming Value) { self.value = value }
    }

    private let storage: Storage

    /// See `Synchronization.Mutex`.
    public init(_ initialValue: consuming sending Value) { storage = Storage(initialValue) }

    /// See `Synchronization.Mutex`.
    public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        storage.lock.lock()
        defer { storage.lock.unlock() }
        return try body(&storage.value)
    }
}
