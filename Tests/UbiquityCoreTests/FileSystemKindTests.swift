// SPDX-License-Identifier: Apache-2.0

import Testing
import UbiquityCore

@Suite struct `The kind of a file system` {
    @Test(arguments: [
        "nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "gfs2", "ocfs2", "lustre", "vboxsf",
        "glusterfs",
    ])
    func `is a network where other machines may have the same files`(type: String) {
        #expect(FileSystemKind(type: type) == .network(type))
    }

    @Test(arguments: ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "fuseblk", ""])
    func `is local where only this machine has them`(type: String) {
        #expect(FileSystemKind(type: type) == .local)
    }

    @Test func `of a program is known by the program's name, or not at all`() {
        #expect(FileSystemKind(type: "fuse.sshfs") == .network("sshfs"))
        #expect(FileSystemKind(type: "fuse.bindfs") == .unknown("bindfs"))
        #expect(FileSystemKind(type: "fuse") == .unknown("fuse"))
        #expect(FileSystemKind(type: "virtiofs") == .unknown("virtiofs"))
    }

    private static let mounts = #"""
        27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
        30 27 0:40 / /home rw shared:5 master:1 - nfs4 files:/home rw
        31 30 0:41 / /home/ann rw - ext4 /dev/vdb rw
        32 27 0:42 / /mnt/a\040b rw - fuse.sshfs ann@host: rw
        33 27 0:43 / /srv rw - ext4 /dev/vdc rw
        34 27 0:44 / /srv rw - cifs //files/srv rw
        35 27
        36 27 0:45 / /short rw -
        """#

    @Test func `is that of the mount that has the path`() {
        func kind(_ path: String) -> FileSystemKind {
            FileSystemKind(of: path, mounts: Self.mounts)
        }
        #expect(kind("/") == .local && kind("/var/lib") == .local && kind("/homes") == .local)
        #expect(kind("/home") == .network("nfs4") && kind("/home/bob/x") == .network("nfs4"))
        #expect(kind("/home/ann/.local") == .local)
        #expect(kind("/mnt/a b/c") == .network("sshfs"))
        #expect(kind("/srv/data") == .network("cifs"))
        #expect(kind("/short/x") == .local)
        #expect(FileSystemKind(of: "/x", mounts: "") == .local)
    }

    @Test func `a folder that the environment names is an absolute one`() {
        #expect(["XDG_DATA_HOME": "/x", "HOME": "/h"].dataHome == "/x")
        #expect(["XDG_DATA_HOME": "x", "HOME": "/h"].dataHome == "/h/.local/share")
        #expect(["XDG_DATA_HOME": "", "HOME": "h"].dataHome == nil)
    }
}
