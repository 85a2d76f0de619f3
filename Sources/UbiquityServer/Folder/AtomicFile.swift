// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// A file for its owner only that gets its name only when it is complete. It takes the place of a
/// regular file only: never of a device, a pipe, a link or a folder.
///
/// Until ``finish()`` it has a temporary name in the same folder. If released before that, it is
/// removed. Not to be used by two threads at once.
package final class AtomicFile: Sendable {
    /// The final path.
    package let path: String
    /// The temporary path.
    package let draftPath: String
    private let replaces: Bool
    private let file: Int32
    private let folder: Int32

    /// - Parameter replaces: Whether ``finish()`` replaces an existing file.
    /// - Throws: ``AtomicFileError``.
    package init(path: String, replaces: Bool) throws(AtomicFileError) {
        let url = URL(fileURLWithPath: (path as NSString).expandingTildeInPath)
        self.path = url.path
        self.replaces = replaces
        draftPath = Self.draftPrefix(of: self.path) + UUID().uuidString.prefix(Self.numberDigits)
        try Self.checkFolder(of: self.path)
        try Self.checkPlace(self.path, replaces: replaces)
        // Opened now, because a folder that cannot be flushed is found too late at the end.
        folder = open(Self.folder(of: self.path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        let code = errno
        file =
            folder < 0 ? -1 : open(draftPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        // Closed by `deinit`.
        guard folder >= 0 else { throw AtomicFileError(self.path, code) }
        guard file >= 0 else { throw AtomicFileError(self.path, errno) }
    }

    deinit {
        if file >= 0 {
            close(file)
            unlink(draftPath)
        }
        if folder >= 0 { close(folder) }
    }

    /// Appends bytes.
    /// - Throws: ``AtomicFileError``.
    package func write(_ bytes: [UInt8]) throws(AtomicFileError) {
        if let code = writeAll(bytes, to: file) { throw AtomicFileError(path, code) }
    }

    /// Flushes the file, gives it its name, and flushes the folder.
    /// - Throws: ``AtomicFileError``; an existing file is unchanged then, and otherwise there is
    ///   none. Only where the folder cannot be flushed, the file is there, and may be lost with the
    ///   power.
    package func finish() throws(AtomicFileError) {
        guard fsync(file) == 0 else { throw AtomicFileError(path, errno) }
        if replaces {
            guard rename(draftPath, path) == 0 else { throw AtomicFileError(path, errno) }
        } else {
            try nameOnce()
        }
        if let code = Self.flush(folder) { throw AtomicFileError(path, code) }
    }

    /// Uses a hard link, which fails if the name is taken by now. Some file systems have no hard
    /// links.
    private func nameOnce() throws(AtomicFileError) {
        if link(draftPath, path) == 0 { return }
        guard [EPERM, ENOTSUP, ENOSYS].contains(errno) else { throw AtomicFileError(path, errno) }
        try Self.checkPlace(path, replaces: false)
        guard rename(draftPath, path) == 0 else { throw AtomicFileError(path, errno) }
    }

    /// Removes unfinished drafts and SQLite's files beside them. Nobody may be writing one
    /// meanwhile.
    static func removeLeftovers(of path: String) {
        let prefix = draftPrefix(of: path) as NSString
        let folder = prefix.deletingLastPathComponent
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names where isDraft(name, prefix: prefix.lastPathComponent) {
            unlink((folder as NSString).appendingPathComponent(name))
        }
    }

    /// Whether a name is that of a draft, or of SQLite's file beside one. Other files are never
    /// removed.
    private static func isDraft(_ name: String, prefix: String) -> Bool {
        guard name.hasPrefix(prefix) else { return false }
        let rest = name.dropFirst(prefix.count)
        let number = rest.prefix(numberDigits)
        return number.count == numberDigits
            && number.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x46).contains($0) }
            && ["", "-wal", "-shm", "-journal"].contains(rest.dropFirst(numberDigits))
    }

    /// The length of the part of a UUID after the prefix, in upper-case hexadecimal.
    private static let numberDigits = 8

    /// The prefix of the names of a file's drafts.
    private static func draftPrefix(of path: String) -> String {
        let path = path as NSString
        return (path.deletingLastPathComponent as NSString)
            .appendingPathComponent(".\(path.lastPathComponent).")
    }

    /// Root only writes where nobody else can replace its file by a link.
    private static func checkFolder(of path: String) throws(AtomicFileError) {
        let folder = folder(of: path)
        guard geteuid() == 0, let status = FileStatus(path: folder) else { return }
        guard status.isForeign || status.isWritableByOthers && !status.isSticky else { return }
        throw AtomicFileError(path, sharedFolder: folder)
    }

    /// Does not follow a link, whose place the file would take.
    private static func checkPlace(_ path: String, replaces: Bool) throws(AtomicFileError) {
        // What cannot be looked at cannot be replaced either.
        guard let status = try? FileManager.default.attributesOfItem(atPath: path) else { return }
        let kind = status[.type] as? FileAttributeType
        guard kind == .typeRegular else { throw AtomicFileError(path, notFile: kind) }
        if !replaces { throw AtomicFileError(path, EEXIST) }
    }

    private static func folder(of path: String) -> String {
        (path as NSString).deletingLastPathComponent
    }

    /// Flushes the folder of a file or folder, which is then there after a power failure.
    /// - Returns: The value of `errno` if that failed.
    static func flushFolder(of path: String) -> Int32? {
        let folder = open(folder(of: path), O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { return errno }
        defer { close(folder) }
        return flush(folder)
    }

    /// Some file systems report that they cannot flush a folder; they have nothing to flush.
    private static func flush(_ folder: Int32) -> Int32? {
        fsync(folder) == 0 || errno == EINVAL ? nil : errno
    }
}

/// Writes to a file, pipe or terminal.
/// - Returns: The value of `errno` if not everything was written.
package func writeAll(_ bytes: [UInt8], to file: Int32) -> Int32? {
    var rest = bytes[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        if count >= 0 {
            rest = rest.dropFirst(count)
        } else if errno != EINTR {
            return errno
        }
    }
    return nil
}

/// The reason a file cannot be made, as a sentence for people.
package struct AtomicFileError: Error, Hashable, Sendable, CustomStringConvertible {
    package let path: String
    package let description: String

    init(_ path: String, sharedFolder folder: String) {
        self.path = path
        description =
            "root does not write \(path): the folder \(folder) belongs to another user or is open "
            + "to others, who could put a link there; choose a folder that only root can "
            + "change, such as /root"
    }

    /// - Parameter kind: Of what is at the path.
    init(_ path: String, notFile kind: FileAttributeType?) {
        self.path = path
        let name =
            switch kind {
            case .typeDirectory?: "a folder"
            case .typeSymbolicLink?: "a link"
            case .typeBlockSpecial?, .typeCharacterSpecial?: "a device"
            default: "a pipe or socket"
            }
        description = "\(path) is \(name), which is not replaced; give the path of a file"
    }

    init(_ path: String, _ code: Int32) {
        self.path = path
        description =
            switch code {
            case EEXIST: "the file \(path) already exists; give --force to replace it"
            case ENOENT:
                "\(path) cannot be created: there is no folder "
                    + (path as NSString).deletingLastPathComponent
            case ENOSPC, EDQUOT: "\(path) cannot be written: there is no room on its disk"
            default: "\(path) cannot be written: \(DataFolder.systemReason(code))"
            }
    }
}
