// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// Files that control access: secrets, and trusted keys. Only the server's user and root may be
/// able to change them.
enum PrivateFile {
    /// - Returns: Nil if there is no such file.
    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` if others can use it too.
    static func read(_ path: String) throws(ServerStartError) -> [UInt8]? {
        try read(path, requirePrivate)
    }

    /// Reads a file that others may read, but not change.
    static func readPublic(_ path: String) throws(ServerStartError) -> [UInt8]? {
        try read(path, requireTrusted)
    }

    /// Reads a key, which may also be root's and readable by a group of this process, as Debian's
    /// `ssl-cert` and volumes of Kubernetes have it: root has decided who is in the group.
    static func readKey(_ path: String) throws(ServerStartError) -> [UInt8]? {
        let isOfGroup = FileStatus(path: path)?.isReadableByOwnGroup ?? false
        return try read(path, isOfGroup ? requireTrusted : requirePrivate)
    }

    private static func read(
        _ path: String, _ check: (String) throws(ServerStartError) -> Void
    ) throws(ServerStartError) -> [UInt8]? {
        guard access(path, F_OK) == 0 else {
            if [ENOENT, ENOTDIR].contains(errno) { return nil }
            throw .fileUnusable(path: path, reason: DataFolder.systemReason())
        }
        try check(path)
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw .fileUnusable(path: path, reason: "it cannot be read")
        }
        return [UInt8](bytes)
    }

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` if others can use the file.
    static func requirePrivate(_ path: String) throws(ServerStartError) {
        try requireTrusted(path)
        guard let status = FileStatus(path: path), status.isOpenToOthers else { return }
        let advice =
            status.owner == geteuid()
            ? "run `chmod 600 \(path)`"
            : "as root, run `chmod 640 \(path)`, and give it to a group of the server's user"
        throw .fileUnusable(path: path, reason: "other users can read it; \(advice)")
    }

    /// - Throws: ``ServerStartError/fileUnusable(path:reason:)`` if others can change the file.
    private static func requireTrusted(_ path: String) throws(ServerStartError) {
        guard let status = FileStatus(path: path) else { return }
        guard !status.isForeign else {
            throw .fileUnusable(path: path, reason: "it belongs to \(status.ownerAndAdvice)")
        }
        guard status.isWritableByOthers else { return }
        throw .fileUnusable(
            path: path, reason: "other users can write to it; run `chmod go-w \(path)`")
    }
}

/// The attributes of a file: its permissions, and what distinguishes one content from another.
///
/// Read through Foundation, because the module that declares the system's `stat` differs from build
/// to build.
struct FileStatus: Hashable, Sendable {
    /// The lower nine bits: the permissions of the owner, the group and others.
    var mode: Int
    var owner: UInt32
    private var group: UInt32
    /// The name for `sudo -u`, or a number if the user has none.
    var ownerName: String
    var bytes: Int
    /// For a folder: users with write permission can only remove and rename their own files.
    var isSticky: Bool
    private var device: Int
    private var inode: Int
    private var modified: Date?

    /// Fails if there is no such file, or it cannot be examined.
    init?(path: String) {
        // Follows links, because the content that is read matters.
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard let status = try? FileManager.default.attributesOfItem(atPath: path) else {
            return nil
        }
        func number(_ key: FileAttributeKey) -> Int { (status[key] as? NSNumber)?.intValue ?? 0 }
        mode = number(.posixPermissions) & 0o777
        isSticky = number(.posixPermissions) & 0o1000 != 0
        owner = UInt32(truncatingIfNeeded: number(.ownerAccountID))
        group = UInt32(truncatingIfNeeded: number(.groupOwnerAccountID))
        ownerName = status[.ownerAccountName] as? String ?? "'#\(owner)'"
        bytes = number(.size)
        device = number(.systemNumber)
        inode = number(.systemFileNumber)
        modified = status[.modificationDate] as? Date
    }

    /// Whether both are the attributes of one file, even if it was written in between.
    func isSameFile(as other: Self) -> Bool { (device, inode) == (other.device, other.inode) }

    /// Whether anyone but the owner has any permission.
    var isOpenToOthers: Bool { mode & 0o077 != 0 }
    var isWritableByOthers: Bool { mode & 0o022 != 0 }
    /// Whether it belongs neither to this process's user nor to root.
    var isForeign: Bool { owner != 0 && owner != geteuid() }

    /// Whether root lets a group of this process read it, and nobody else.
    var isReadableByOwnGroup: Bool {
        var groups = [gid_t](repeating: 0, count: Int(max(0, getgroups(0, nil))))
        groups = Array(groups.prefix(Int(max(0, getgroups(Int32(groups.count), &groups)))))
        return owner == 0 && mode & 0o037 == 0 && (groups + [getegid()]).contains(group)
    }

    /// The owner's name, and what to do if the system only shows a stand-in.
    var ownerAndAdvice: String {
        owner == ServerStartError.unmappedUser ? ServerStartError.unmappedAdvice : ownerName
    }
}
