// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The system's information about itself. Nil where a system does not provide it.
enum Machine {
    static func freeBytes(at path: String) -> Int? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return Int(clamping: UInt64(status.f_bavail) * UInt64(status.f_frsize))
    }

    static func userName(_ user: UInt32) -> String {
        getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "'#\(user)'"
    }

    static func openFilesMax(of process: Int32) -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)
        else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix("Max open files") }
        return line?.split(separator: " ").dropFirst(3).first.flatMap { Int($0) }
    }

    /// The reason no folder can be watched; nil if one can.
    static func watchFailure(of folder: String) -> String? {
        #if os(Linux)
        let watches = inotify_init1(Int32(IN_CLOEXEC))
        guard watches >= 0 else { return String(cString: strerror(errno)) }
        defer { close(watches) }
        let watch = inotify_add_watch(watches, folder, UInt32(IN_MOVED_TO))
        guard watch < 0, errno != ENOENT, errno != EACCES else { return nil }
        return String(cString: strerror(errno))
        #else
        return nil
        #endif
    }
}
