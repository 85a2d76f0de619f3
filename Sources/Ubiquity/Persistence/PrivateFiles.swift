// SPDX-License-Identifier: Apache-2.0

internal import Foundation

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

/// Files and folders that only the user can access: modes 0600 and 0700. On Windows, profile
/// folders already are private, and new files inherit that.
package enum PrivateFiles {
    /// Makes the folder and any missing folders above it. Existing ones keep their permissions.
    /// - Throws: ``SystemError``.
    package static func makeFolder(_ path: String) throws(SystemError) {
        #if os(Windows)
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true)
        } catch { throw SystemError("\(error.localizedDescription)") }
        #else
        if mkdir(path, 0o700) == 0 { return }
        let code = errno
        if code == ENOENT, let parent = parent(of: path) {
            try makeFolder(parent)
            guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError(errno) }
            try flushFolder(parent)
        } else if !isFolder(path) {
            throw SystemError(code == EEXIST ? ENOTDIR : code)
        }
        #endif
    }

    /// - Throws: ``SystemError/ofAnotherUser`` if the folder belongs neither to this process's user
    ///   nor to root, ``SystemError/writableByOthers`` if others may put files into it.
    package static func requireOwnFolder(_ path: String) throws(SystemError) {
        #if !os(Windows)
        var status = stat()
        guard stat(path, &status) == 0 else { throw SystemError(errno) }
        guard isOwn(status) else { throw .ofAnotherUser }
        guard status.st_mode & 0o022 == 0 else { throw .writableByOthers }
        #endif
    }

    #if !os(Windows)
    static func isOwn(_ status: stat) -> Bool { status.st_uid == geteuid() || status.st_uid == 0 }
    #endif

    /// Makes an empty file unless it exists. An existing one is not opened, because it may belong
    /// to a database (``SQLiteFile``).
    /// - Throws: ``SystemError``.
    package static func makeFile(_ path: String) throws(SystemError) {
        #if os(Windows)
        guard !FileManager.default.fileExists(atPath: path) else { return }
        guard FileManager.default.createFile(atPath: path, contents: nil) else {
            throw SystemError("the file cannot be made")
        }
        #else
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            if errno == EEXIST { return }
            throw SystemError(errno)
        }
        close(file)
        #endif
    }

    /// The path up to its last slash; nil if there is no folder above.
    package static func parent(of path: String) -> String? {
        let parent = (path as NSString).deletingLastPathComponent
        return parent.isEmpty || parent == path ? nil : parent
    }

    #if !os(Windows)
    static func flushFolder(_ path: String) throws(SystemError) {
        let folder = open(path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw SystemError(errno) }
        defer { close(folder) }
        // Some file systems report that they cannot flush a folder; they have nothing to flush.
        guard fsync(folder) == 0 || errno == EINVAL else { throw SystemError(errno) }
    }

    private static func isFolder(_ path: String) -> Bool {
        var isFolder: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            && isFolder.boolValue
    }
    #endif
}
