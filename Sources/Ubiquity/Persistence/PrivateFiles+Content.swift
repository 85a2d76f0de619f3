// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#elseif canImport(ucrt)
internal import ucrt
#endif

extension PrivateFiles {
    /// - Returns: Nil if there is no file.
    /// - Parameter isOwn: Whether the file must belong to this process's user or to root.
    /// - Throws: ``SystemError``, including ``SystemError/readableByOthers`` and
    ///   ``SystemError/ofAnotherUser``.
    package static func read(_ path: String, isOwn: Bool = false) throws(SystemError) -> Data? {
        #if os(Windows)
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        #else
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw SystemError(errno)
        }
        guard !isOwn || Self.isOwn(status) else { throw .ofAnotherUser }
        guard status.st_mode & 0o077 == 0 else { throw .readableByOthers }
        #endif
        do { return try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
            throw SystemError(error.localizedDescription)
        }
    }

    /// Atomically replaces a file: readers, also after a power failure, find either the old or the
    /// new content. Concurrent replacements of the same file must exclude each other.
    /// - Throws: ``SystemError``; the old file is then unchanged.
    static func replace(_ path: String, with bytes: Data) throws(SystemError) {
        #if os(Windows)
        do { try bytes.write(to: URL(fileURLWithPath: path), options: .atomic) } catch {
            throw SystemError(error.localizedDescription)
        }
        #else
        guard let folder = parent(of: path) else { throw SystemError(EINVAL) }
        // Begins with a period, so that watchers do not mistake it for the file.
        let new = folder + "/." + (path as NSString).lastPathComponent + ".new"
        try write(bytes, to: new)
        guard rename(new, path) == 0 else { throw SystemError(errno) }
        try flushFolder(folder)
        #endif
    }

    #if !os(Windows)
    private static func write(_ bytes: Data, to path: String) throws(SystemError) {
        // A file left by a process that died here may have other permissions.
        unlink(path)
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemError(errno) }
        defer { close(file) }
        var rest = [UInt8](bytes)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { systemWrite(file, $0.baseAddress!, $0.count) }
            guard count > 0 else { throw SystemError(errno) }
            rest = rest.dropFirst(count)
        }
        guard fsync(file) == 0 else { throw SystemError(errno) }
    }
    #endif
}

#if !os(Windows)
/// The system's `write`, which `PrivateFiles` shadows.
private func systemWrite(_ file: CInt, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(file, bytes, count)
}
#endif

extension SystemError {
    /// The permissions let users other than the owner read the file.
    package static let readableByOthers = SystemError("other users can read it")
    static let writableByOthers = SystemError("other users can write to it")
    static let ofAnotherUser = SystemError("it belongs to another user")
}
