// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A file with at most one lock holder in the whole system. The kernel releases the lock when the
/// holder dies, however it dies. The file stays empty and is never removed.
///
/// The lock belongs to the open file, so two holders in one process exclude each other too.
package struct FileLock: ~Copyable {
    private let file: CInt

    /// Opens the file, creating it if needed, without locking it.
    /// - Throws: ``SystemError``.
    package init(path: String) throws(SystemError) {
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemError(errno) }
    }

    /// Unlocks the file explicitly. Closing is not enough: a child process being started also has
    /// it open, until it executes its program.
    deinit {
        flock(file, LOCK_UN)
        close(file)
    }

    /// - Returns: Whether the lock is now held.
    package borrowing func tryLock() -> Bool {
        flock(file, LOCK_EX | LOCK_NB) == 0
    }

    /// Blocks the thread until the lock is held.
    /// - Throws: ``SystemError`` if the file system does not support locks.
    package borrowing func lock() throws(SystemError) {
        while flock(file, LOCK_EX) != 0 {
            guard errno == EINTR else { throw SystemError(errno) }
        }
    }

    package borrowing func unlock() {
        flock(file, LOCK_UN)
    }
}

/// The process that has locked a file, if the system can tell, as Linux can.
package struct LockHolder: Hashable, Sendable, CustomStringConvertible {
    package var process: Int32
    package var name: String
    /// Stopped by a debugger or by `SIGSTOP`. It keeps the lock and does nothing.
    package var isStopped: Bool

    /// - Returns: Nil if there is none or it is unknown.
    package init?(of path: String) {
        guard let file = try? FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber],
            let number = (file as? NSNumber)?.uint64Value,
            let process = Self.holder(of: path, number)
        else { return nil }
        self.process = process
        let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
        self.name = name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "a process"
        isStopped = Self.isStopped(process)
    }

    /// For example "notes (4711)".
    package var description: String { "\(name) (\(process))" }

    /// The kernel lists locks a page at a time, and leaves one out if others end between two pages.
    /// (`String(contentsOfFile:)` takes the first page for all.)
    private static let attempts = 4

    private static func holder(of path: String, _ number: UInt64) -> Int32? {
        for _ in 0..<attempts {
            guard let bytes = try? FileHandle(forReadingAtPath: "/proc/locks")?.readToEnd()
            else { return nil }
            let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
            let locks = lines.compactMap { Lock($0) }.filter { $0.file == number }
            if let lock = locks.first(where: { isOn($0, path) }) { return lock.process }
        }
        return nil
    }

    /// A line such as "1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF". Waiting processes have "->"
    /// as the second field.
    private struct Lock {
        var process: Int32
        var device: Substring
        var file: UInt64

        init?(_ line: Substring) {
            let fields = line.split(separator: " ")
            guard fields.count > 5, fields[1] == "FLOCK", let process = Int32(fields[4]),
                process > 0, let colon = fields[5].lastIndex(of: ":"),
                let file = UInt64(fields[5][colon...].dropFirst())
            else { return nil }
            (self.process, self.file, device) = (process, file, fields[5][..<colon])
        }
    }

    /// Whether a lock is on the file: one on another file system may have the same number. The
    /// process has it open; or, if the system does not say what it has open, as of a service in a
    /// namespace of its own, the lock is on the file's device, which on Btrfs never matches.
    private static func isOn(_ lock: Lock, _ path: String) -> Bool {
        let folder = "/proc/\(lock.process)/fd"
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let paths = files.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")
        }
        guard !paths.isEmpty else { return device(of: path) == String(lock.device) }
        return paths.contains(URL(fileURLWithPath: path).resolvingSymlinksInPath().path)
    }

    /// The device of a file as it appears in a lock's line, such as "fe:00".
    private static func device(of path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        // Linux' own division of the number.
        let number = UInt64(truncatingIfNeeded: status.st_dev)
        let major = (number >> 8 & 0xfff) | (number >> 32 & ~0xfff)
        let minor = (number & 0xff) | (number >> 12 & ~0xff)
        return [major, minor].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
            .joined(separator: ":")
    }

    /// Parses "4711 (notes) T 1 ...", in which the name may contain anything.
    private static func isStopped(_ process: Int32) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = status.lastIndex(of: ")")
        else { return false }
        let state = status[end...].dropFirst().first { $0 != " " }
        return state == "T" || state == "t"
    }
}
