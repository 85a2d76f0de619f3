// SPDX-License-Identifier: Apache-2.0

/// The kind of file system that a folder is on: whether other machines may use the same files.
///
/// SQLite's processes share memory and locks, which end at the machine's border. Two machines, or two
/// mounts, that use one database overwrite each other's commits, and both report them as saved.
package enum FileSystemKind: Hashable, Sendable {
    case local
    /// - Parameter name: The type, as the system calls it, such as `nfs4`.
    case network(_ name: String)
    /// A program's file system, which may be a disk of this machine or a network.
    case unknown(_ name: String)

    package var isNetwork: Bool { if case .network = self { true } else { false } }

    /// - Parameter type: The type, as `/proc/self/mountinfo` has it, and Darwin's `statfs`. It tells
    ///   the file systems of programs (FUSE) apart, which the number in Linux' `statfs` does not.
    package init(type: String) {
        let name = type.hasPrefix("fuse.") ? String(type.dropFirst("fuse.".count)) : type
        if Self.networks.contains(name) {
            self = .network(name)
        } else if type.hasPrefix("fuse.") || Self.unknowns.contains(type) {
            self = .unknown(name)
        } else {
            self = .local
        }
    }

    /// The kind of the file system on which a folder is, as far as the mounts tell.
    /// - Parameters:
    ///   - path: Absolute and without links.
    ///   - mounts: The content of `/proc/self/mountinfo`.
    package init(of path: String, mounts: String) {
        var found: (point: String, type: String)?
        for line in mounts.split(separator: "\n") {
            // "36 35 98:0 /root /point options [fields] - type source options"
            let fields = line.split(separator: " ")
            guard fields.count > Self.pointField,
                let dash = fields[Self.pointField...].firstIndex(of: "-"),
                dash + 1 < fields.count
            else { continue }
            let point = Self.unescaped(fields[Self.pointField])
            guard point == "/" || path == point || path.hasPrefix(point + "/") else { continue }
            // Of two at one point, the later one covers the earlier one.
            if let found, found.point.utf8.count > point.utf8.count { continue }
            found = (point, String(fields[dash + 1]))
        }
        self = found.map { Self(type: $0.type) } ?? .local
    }

    private static let pointField = 4

    /// Spaces and the like are octal there, such as `\040`.
    private static func unescaped(_ text: Substring) -> String {
        var (bytes, rest) = ([UInt8](), Array(text.utf8)[...])
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            guard byte == UInt8(ascii: "\\"), digits.count == 3,
                let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            else {
                bytes.append(byte)
                continue
            }
            bytes.append(code)
            rest = rest.dropFirst(3)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let networks: Set = [
        // Networks and clusters.
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "afpfs", "webdav", "davfs", "davfs2", "afs",
        "openafs", "9p", "ceph", "ceph-fuse", "gfs", "gfs2", "ocfs2", "lustre", "gpfs", "beegfs",
        "orangefs", "pvfs2", "panfs", "glusterfs", "coda", "ncpfs", "moosefs", "mfs", "juicefs",
        "sshfs", "curlftpfs", "gvfsd-fuse", "s3fs", "goofys", "gcsfuse", "blobfuse", "blobfuse2",
        "rclone", "mount-s3",
        // A virtual machine's share of its host's folder.
        "vboxsf", "prl_fs", "vmhgfs", "vmhgfs-fuse",
    ]

    /// `fuseblk` is not one of them: it has a disk.
    private static let unknowns: Set = ["fuse", "virtiofs", "macfuse", "osxfuse"]
}
