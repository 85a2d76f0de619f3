// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#elseif canImport(WinSDK)
internal import WinSDK
#endif

/// A file with at most one lock holder in the whole system. The kernel releases the lock when the
/// holder dies, however it dies. The file stays empty and is never removed.
///
/// The lock belongs to the open file, so two holders in one process exclude each other too.
package struct FileLock: ~Copyable {
    #if os(Windows)
    private let handle: HANDLE
    #else
    private let file: CInt
    #endif

    /// Opens the file, creating it if needed, without locking it.
    /// - Throws: ``SystemError``.
    package init(path: String) throws(SystemError) {
        #if os(Windows)
        handle = try Self.openHandle(path)
        #else
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemError(errno) }
        #endif
    }

    /// Unlocks the file explicitly. Closing is not enough: a child process being started also has
    /// it open, until it executes its program.
    deinit {
        #if os(Windows)
        CloseHandle(handle)
        #else
        flock(file, LOCK_UN)
        close(file)
        #endif
    }

    /// - Returns: Whether the lock is now held.
    package borrowing func tryLock() -> Bool {
        #if os(Windows)
        lock(flags: LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY)
        #else
        flock(file, LOCK_EX | LOCK_NB) == 0
        #endif
    }

    /// Blocks the thread until the lock is held.
    /// - Throws: ``SystemError`` if the file system does not support locks.
    package borrowing func lock() throws(SystemError) {
        #if os(Windows)
        guard lock(flags: LOCKFILE_EXCLUSIVE_LOCK) else { throw SystemError("LockFileEx failed") }
        #else
        while flock(file, LOCK_EX) != 0 {
            guard errno == EINTR else { throw SystemError(errno) }
        }
        #endif
    }

    package borrowing func unlock() {
        #if os(Windows)
        var overlapped = OVERLAPPED()
        UnlockFileEx(handle, 0, 1, 0, &overlapped)
        #else
        flock(file, LOCK_UN)
        #endif
    }
}

#if os(Windows)
extension FileLock {
    private borrowing func lock(flags: CInt) -> Bool {
        var overlapped = OVERLAPPED()
        return LockFileEx(handle, DWORD(flags), 0, 1, 0, &overlapped)
    }

    private static func openHandle(_ path: String) throws(SystemError) -> HANDLE {
        let handle = path.withCString(encodedAs: UTF16.self) { name in
            CreateFileW(
                name, GENERIC_READ | DWORD(GENERIC_WRITE),
                DWORD(FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE), nil,
                DWORD(OPEN_ALWAYS), DWORD(FILE_ATTRIBUTE_NORMAL), nil)
        }
        guard let handle, handle != INVALID_HANDLE_VALUE else {
            throw SystemError("the lock file cannot be opened, error \(GetLastError())")
        }
        return handle
    }
}
#endif
