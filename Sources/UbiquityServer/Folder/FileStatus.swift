// SPDX-License-Identifier: Apache-2.0

// Where the system's `stat` is declared depends on the platform.
#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Dispatch
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// What the system says of a file: its rights, and what tells one content from another.
struct FileStatus: Hashable, Sendable {
    /// Anybody but the owner may do something with it.
    var isOpenToOthers: Bool
    var bytes: Int
    private var inode: UInt64
    private var seconds: Int64
    private var nanoseconds: Int64

    /// Nil if there is no such file, or it cannot be asked for.
    init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// Of an open file.
    init?(file: Int32) {
        var status = stat()
        guard fstat(file, &status) == 0 else { return nil }
        self.init(status)
    }

    private init(_ status: stat) {
        isOpenToOthers = status.st_mode & 0o077 != 0
        bytes = Int(status.st_size)
        inode = UInt64(status.st_ino)
        #if canImport(Darwin)
        let time = status.st_mtimespec
        #else
        let time = status.st_mtim
        #endif
        seconds = Int64(time.tv_sec)
        nanoseconds = Int64(time.tv_nsec)
    }
}
