// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The process that has locked a file, as far as the system tells: Linux does.
package struct LockHolder: Hashable, Sendable, CustomStringConvertible {
    package var process: Int32
    package var name: String
    /// By a debugger, or by `SIGSTOP`: it keeps the lock and does nothing.
    package var isStopped: Bool

    /// - Returns: Nil if nobody has, or it cannot be told.
    package init?(of path: String) {
        guard let file = try? FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber],
            let number = (file as? NSNumber)?.uint64Value,
            let locks = try? String(contentsOfFile: "/proc/locks", encoding: .utf8),
            let process = locks.split(separator: "\n").lazy
                .compactMap({ Self.holder(in: $0, of: number) })
                .first(where: { Self.hasOpen($0, path) })
        else { return nil }
        self.process = process
        let name = try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)
        self.name = name?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "a process"
        isStopped = Self.isStopped(process)
    }

    /// Such as "notes (4711)".
    package var description: String { "\(name) (\(process))" }

    /// "1: FLOCK  ADVISORY  WRITE 4711 fe:00:123 0 EOF"; those that wait have "->" second.
    private static func holder(in line: Substring, of file: UInt64) -> Int32? {
        let fields = line.split(separator: " ")
        guard fields.count > 5, fields[1] == "FLOCK", let process = Int32(fields[4]), process > 0,
            fields[5].split(separator: ":").last.flatMap({ UInt64($0) }) == file
        else { return nil }
        return process
    }

    /// Another file system may have a locked file of the same number. The device in the line does not
    /// tell: on Btrfs it is another one than the file's own.
    private static func hasOpen(_ process: Int32, _ path: String) -> Bool {
        let folder = "/proc/\(process)/fd"
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return files.contains {
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)"))
                == target
        }
    }

    /// "4711 (notes) T 1 ...", of which the name may be anything.
    private static func isStopped(_ process: Int32) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = status.lastIndex(of: ")")
        else { return false }
        let state = status[end...].dropFirst().first { $0 != " " }
        return state == "T" || state == "t"
    }
}
