// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The system's figures about this process and its files.
enum SystemFigures {
    /// The machine's own name; nil if the system does not provide it.
    static var machineName: String? {
        var name = [CChar](repeating: 0, count: 256)
        guard gethostname(&name, name.count - 1) == 0 else { return nil }
        let bytes = name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:))
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Nil if the system does not provide it.
    static var memoryBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else {
            return nil
        }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return pages.map { $0 * sysconf(Int32(_SC_PAGESIZE)) }
    }

    /// The total size of the files that exist.
    static func bytes(ofFiles paths: [String]) -> Int {
        paths.reduce(0) { $0 + (FileStatus(path: $1)?.bytes ?? 0) }
    }
}
