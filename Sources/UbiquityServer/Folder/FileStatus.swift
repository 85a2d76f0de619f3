// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// What the system says of a file: its rights, and what tells one content from another.
///
/// Asked through Foundation: which module declares the system's `stat` differs from build to build.
struct FileStatus: Hashable, Sendable {
    /// The lower nine bits: what the owner, the group and others may do.
    var mode: Int
    var owner: UInt32
    /// As `sudo -u` takes it, a number where the user has no name.
    var ownerName: String
    var group: UInt32
    var bytes: Int
    /// Of a folder: who may write to it may remove and rename their own files alone.
    var isSticky: Bool
    private var inode: Int
    private var modified: Date?

    /// Nil if there is no such file, or it cannot be asked for.
    init?(path: String) {
        // Links are followed: what matters is what is read.
        let path = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        guard let status = try? FileManager.default.attributesOfItem(atPath: path) else {
            return nil
        }
        func number(_ key: FileAttributeKey) -> Int { (status[key] as? NSNumber)?.intValue ?? 0 }
        mode = number(.posixPermissions) & 0o777
        isSticky = number(.posixPermissions) & 0o1000 != 0
        owner = UInt32(truncatingIfNeeded: number(.ownerAccountID))
        ownerName = status[.ownerAccountName] as? String ?? "'#\(owner)'"
        group = UInt32(truncatingIfNeeded: number(.groupOwnerAccountID))
        bytes = number(.size)
        inode = number(.systemFileNumber)
        modified = status[.modificationDate] as? Date
    }

    /// Anybody but the owner may do something with it.
    var isOpenToOthers: Bool { mode & 0o077 != 0 }
    var isWritableForOthers: Bool { mode & 0o022 != 0 }
    /// It is neither this process's user's nor root's.
    var isForeign: Bool { owner != 0 && owner != geteuid() }
}
