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
    /// - Parameter isOwn: Whether the file must be this process's user's, or root's.
    /// - Throws: ``SystemError``, ``SystemError/readableByOthers`` and ``SystemError/ofAnotherUser``
    ///   included.
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

    /// Puts a new file in the place of the old one: readers, and a loss of power, find one of the
    /// two and whole. Two that replace the same file must exclude each other.
    /// - Throws: ``SystemError``; then the old file is as it was.
    static func replace(_ path: String, with bytes: Data) throws(SystemError) {
        #if os(Windows)
        do { try bytes.write(to: URL(fileURLWithPath: path), options: .atomic) } catch {
            throw SystemError(error.localizedDescription)
        }
        #else
        guard let folder = parent(of: path) else { throw SystemError(EINVAL) }
        // Its name begins with a point, so that nobody who watches for the file takes it for it.
        let new = folder + "/." + (path as NSString).lastPathComponent + ".new"
        try write(bytes, to: new)
        guard rename(new, path) == 0 else { throw SystemError(errno) }
        try flushFolder(folder)
        #endif
    }

    #if !os(Windows)
    private static func write(_ bytes: Data, to path: String) throws(SystemError) {
        // What a process left that died here may have other rights.
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
/// The system's `write`, which `PrivateFiles` hides.
private func systemWrite(_ file: CInt, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(file, bytes, count)
}
#endif

extension SystemError {
    /// The file's rights let users read it whom it does not belong to.
    package static let readableByOthers = SystemError("other users can read it")
    static let writableByOthers = SystemError("other users can write to it")
    static let ofAnotherUser = SystemError("it belongs to another user")
}
