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
            let processes = lines.compactMap { holder(in: $0, of: number) }
            if let process = processes.first(where: { hasOpen($0, path) }) { return process }
        }
        return nil
    }

    /// Parses "1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF". Waiting processes have "->" as the
    /// second field.
    private static func holder(in line: Substring, of file: UInt64) -> Int32? {
        let fields = line.split(separator: " ")
        guard fields.count > 5, fields[1] == "FLOCK", let process = Int32(fields[4]), process > 0,
            fields[5].split(separator: ":").last.flatMap({ UInt64($0) }) == file
        else { return nil }
        return process
    }

    /// Whether the process has the file open. A locked file on another file system may have the
    /// same number. The device in the line does not help, because on Btrfs it differs from the
    /// file's own.
    private static func hasOpen(_ process: Int32, _ path: String) -> Bool {
        let folder = "/proc/\(process)/fd"
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return files.contains {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))
                == target
        }
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
