// SPDX-License-Identifier: Apache-2.0

package import Foundation
package import UbiquityCore

/// Files and folders that only the user can access: modes 0600 and 0700.
package enum PrivateFiles {
    /// Makes the folder and any missing folders above it, which are there after a power failure, too.
    /// Existing ones keep their permissions.
    /// - Throws: ``SystemError``, including ``SystemError/aboveOfAnotherUser``: in another user's
    ///   folder, a new one would be in that user's way. Then the folder is not made.
    package static func makeFolder(_ path: String) throws(SystemError) {
        if try isFolder(path) { return }
        let parent = parent(of: path) ?? "."
        try makeFolder(parent)
        var status = stat()
        guard stat(parent, &status) == 0 else { throw SystemError(errno) }
        guard isOwn(status) else { throw .aboveOfAnotherUser }
        if mkdir(path, 0o700) != 0 {
            let code = errno
            // Another process may have made it, and may not have flushed it yet.
            guard code == EEXIST, try isFolder(path) else { throw SystemError(code) }
        }
        do { try flushFolder(parent) } catch {
            rmdir(path)
            throw error
        }
    }

    /// Whether there is a folder.
    /// - Throws: ``SystemError`` if there is anything else, or that is not known.
    private static func isFolder(_ path: String) throws(SystemError) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT { return false }
            throw SystemError(errno)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(ENOTDIR) }
        return true
    }

    /// Whether there is anything at the path.
    /// - Throws: ``SystemError`` if that is not known, as in a folder that may not be searched.
    package static func exists(_ path: String) throws(SystemError) -> Bool {
        var status = stat()
        if stat(path, &status) == 0 { return true }
        guard [ENOENT, ENOTDIR].contains(errno) else { throw SystemError(errno) }
        return false
    }

    /// - Throws: ``SystemError/ofAnotherUser`` if the folder belongs neither to this process's user
    ///   nor to root, ``SystemError/writableByOthers`` if others may put files into it.
    package static func requireOwnFolder(_ path: String) throws(SystemError) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw SystemError(errno) }
        guard isOwn(status) else { throw .ofAnotherUser }
        guard status.st_mode & 0o022 == 0 else { throw .writableByOthers }
    }

    static func isOwn(_ status: stat) -> Bool { status.st_uid == geteuid() || status.st_uid == 0 }

    /// Makes an empty file unless it exists. An existing one is not opened, because it may belong
    /// to a database (``SQLiteFile``).
    /// - Throws: ``SystemError``.
    package static func makeFile(_ path: String) throws(SystemError) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            if errno == EEXIST { return }
            throw SystemError(errno)
        }
        close(file)
    }

    /// Of a folder that does not exist yet, that of the folder above it.
    package static func fileSystem(of path: String) -> FileSystemKind {
        #if canImport(Darwin)
        var status = statfs()
        guard statfs(path, &status) == 0 else {
            return parent(of: path).map { fileSystem(of: $0) } ?? .local
        }
        let type = withUnsafeBytes(of: status.f_fstypename) { $0.prefix { $0 != 0 } }
        return FileSystemKind(type: String(decoding: type, as: UTF8.self))
        #else
        guard let real = realpath(path, nil) else {
            return parent(of: path).map { fileSystem(of: $0) } ?? .local
        }
        defer { free(real) }
        let mounts = try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
        return FileSystemKind(of: String(cString: real), mounts: mounts ?? "")
        #endif
    }

    /// The path up to its last slash; nil if there is no folder above.
    package static func parent(of path: String) -> String? {
        // Foundation traps for a single character.
        guard path.utf16.count > 1 else { return nil }
        let parent = (path as NSString).deletingLastPathComponent
        return parent.isEmpty || parent == path ? nil : parent
    }

    static func flushFolder(_ path: String) throws(SystemError) {
        let folder = open(path, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw SystemError(errno) }
        defer { close(folder) }
        // Some file systems report that they cannot flush a folder; they have nothing to flush.
        guard fsync(folder) == 0 || errno == EINVAL else { throw SystemError(errno) }
    }

    /// - Returns: Nil if there is no file.
    /// - Parameter isOwn: Whether the file must belong to this process's user or to root.
    /// - Throws: ``SystemError``, including ``SystemError/readableByOthers`` and
    ///   ``SystemError/ofAnotherUser``.
    package static func read(_ path: String, isOwn: Bool = false) throws(SystemError) -> Data? {
        var status = stat()
        guard stat(path, &status) == 0 else {
            if errno == ENOENT { return nil }
            throw SystemError(errno)
        }
        guard !isOwn || Self.isOwn(status) else { throw .ofAnotherUser }
        guard status.st_mode & 0o077 == 0 else { throw .readableByOthers }
        do { return try Data(contentsOf: URL(fileURLWithPath: path)) } catch {
            throw SystemError(error.localizedDescription)
        }
    }

    /// Whether users besides the owner and the group can read or write an open file.
    package static func isForOthers(_ handle: FileHandle) -> Bool {
        var status = stat()
        return fstat(handle.fileDescriptor, &status) == 0 && status.st_mode & 0o007 != 0
    }

    /// Atomically replaces a file: readers, also after a power failure, find either the old or the
    /// new content. Concurrent replacements of the same file must exclude each other.
    /// - Throws: ``SystemError``; the old file is then unchanged.
    package static func replace(_ path: String, with bytes: Data) throws(SystemError) {
        guard let folder = parent(of: path) else { throw SystemError(EINVAL) }
        // Begins with a period, so that watchers do not mistake it for the file.
        let new = folder + "/." + (path as NSString).lastPathComponent + ".new"
        try write(bytes, to: new)
        guard rename(new, path) == 0 else { throw SystemError(errno) }
        try flushFolder(folder)
    }

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
}

/// The system's `write`, which `PrivateFiles` shadows.
private func systemWrite(_ file: CInt, _ bytes: UnsafeRawPointer, _ count: Int) -> Int {
    write(file, bytes, count)
}

extension SystemError {
    /// The permissions let users other than the owner read the file.
    package static let readableByOthers = SystemError("other users can read it")
    static let writableByOthers = SystemError("other users can write to it")
    static let ofAnotherUser = SystemError("it belongs to another user")
    static let aboveOfAnotherUser = SystemError("the folder above it belongs to another user")
}

/// A failed system call.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A few words without a full stop, such as "Permission denied".
    package var description: String
    /// The value of `errno`; nil if unknown.
    package var code: Int32?

    package init(_ description: String) { self.description = description }

    /// - Parameter code: A value of `errno`.
    package init(_ code: Int32) {
        self.init(String(cString: strerror(code)))
        self.code = code
    }
}
